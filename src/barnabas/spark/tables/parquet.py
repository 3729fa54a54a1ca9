"""Plain Parquet files in a directory, for readers that know nothing of tables.

Tasks write below `_staged`, which readers of Parquet pass over. A commit first writes down, in one file
under `_commits`, which files it takes and its mark; then it moves them to their places. Whoever comes next
finishes a move that was cut short, so that a batch is there whole or will be. Maintenance writes what all
commits say into the newest, and removes the others; for a moment a file may be named twice."""

import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import dataset

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.maintenance import Figures, Maintained, disk_bytes, maintained, sweep
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget

STAGED = "_staged"
COMMITS = "_commits"
SCHEMA = "_schema.arrow"


class ParquetStore:
    keeps_partition_columns = False

    def __init__(self, target: TableTarget) -> None:
        if "://" in target.path:
            raise TableError("Plain Parquet is written to local directories; choose delta for others.")
        self._target = target
        self._root = Path(target.path).absolute()
        self.staging = str(self._root / STAGED)

    def schema(self) -> pyarrow.Schema | None:
        path = self._root / COMMITS / SCHEMA
        return pyarrow.ipc.read_schema(pyarrow.py_buffer(path.read_bytes())) if path.exists() else None

    def prepare(self, fitting: Fitting) -> None:
        (self._root / COMMITS).mkdir(parents=True, exist_ok=True)
        known = self.schema()
        fields = [] if known is None else list(known)
        schema = pyarrow.schema([*fields, *fitting.added])
        _write_whole(self._root / COMMITS / SCHEMA, schema.serialize().to_pybytes())

    def last_batch(self, query: str) -> int:
        return max((commit["marks"].get(query, -1) for commit in self._commits()), default=-1)

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        newest = max((int(path.stem) for path in self._commit_files()), default=-1)
        # Looked up after the place was chosen: a batch that comes between takes it.
        if self.last_batch(mark.query) >= mark.batch:
            return
        taken = {"marks": {mark.query: mark.batch}, "files": [file.path for file in files]}
        place = self._root / COMMITS / f"{newest + 1:020}.json"
        _write_whole(place, json.dumps(taken).encode(), is_new=True)
        self._move(taken["files"])

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        raise TableError("Plain Parquet cannot be upserted: choose delta or iceberg.")

    def _commit_files(self) -> list[Path]:
        return sorted((self._root / COMMITS).glob("*.json"))

    def _commits(self) -> list[dict[str, Any]]:
        while True:
            # Where maintenance has removed one since they were listed, another has all that it said.
            with suppress(FileNotFoundError):
                return [json.loads(path.read_text()) for path in self._commit_files()]

    def _named(self) -> list[str]:
        return list(dict.fromkeys(name for commit in self._commits() for name in commit["files"]))

    def finish_moves(self) -> None:
        """Bring the files of all commits to their places."""
        if any((self._root / STAGED).rglob("*.parquet")):
            for commit in self._commits():
                self._move(commit["files"])

    def _move(self, files: Any) -> None:
        for name in files:
            staged, place = self._root / STAGED / name, self._root / name
            if staged.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                # Another may be faster.
                with suppress(FileNotFoundError):
                    staged.replace(place)

    def read(self) -> pyarrow.Table:
        self.finish_moves()
        names = self._named()
        schema = self.schema()
        if schema is None or not names:
            return pyarrow.table([], names=[]) if schema is None else schema.empty_table()
        partitioning = dataset.partitioning(
            pyarrow.schema([schema.field(name) for name in self._target.partition_by]), flavor="hive"
        )
        found = dataset.dataset(
            [str(self._root / name) for name in names],
            schema=schema,
            format="parquet",
            partitioning=partitioning,
            partition_base_dir=str(self._root),
        )
        return found.to_table()

    def count(self) -> int:
        rows: int = self.read().num_rows
        return rows

    def maintain(self, keep_days: float) -> Maintained:
        """Files that no commit names are swept once they are old: younger ones may be of a task that runs."""
        return maintained(self._figures, lambda: self._maintain(keep_days))

    def _figures(self) -> Figures:
        return Figures(len(self._named()), disk_bytes(str(self._root)), len(self._commit_files()))

    def _maintain(self, keep_days: float) -> int:
        self.finish_moves()
        self._join_commits()
        return sweep(self._root, "*.parquet", [str(self._root / name) for name in self._named()], keep_days)

    def _join_commits(self) -> None:
        """Into the newest: that of the next batch comes after it, whoever writes it meanwhile."""
        paths = self._commit_files()
        if len(paths) < 2:
            return
        marks: dict[str, int] = {}
        files: dict[str, None] = {}
        try:
            commits = [json.loads(path.read_text()) for path in paths]
        except FileNotFoundError as error:
            raise Conflict(f"Somebody else looks after {self._root} as well.") from error
        for commit in commits:
            files.update(dict.fromkeys(commit["files"]))
            for query, batch in commit["marks"].items():
                marks[query] = max(batch, marks.get(query, -1))
        _write_whole(paths[-1], json.dumps({"marks": marks, "files": list(files)}).encode())
        for path in paths[:-1]:
            path.unlink(missing_ok=True)


def _write_whole(path: Path, data: bytes, *, is_new: bool = False) -> None:
    """A file that is there whole or not at all, also after a crash; Conflict where a new one is there."""
    partial = path.with_suffix(f".{uuid.uuid4().hex}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if not is_new:
        partial.replace(path)
        return
    try:
        path.hardlink_to(partial)
    except FileExistsError as error:
        raise Conflict(f"Somebody else has written {path} just now.") from error
    finally:
        partial.unlink()
