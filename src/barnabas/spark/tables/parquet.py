"""Plain Parquet files in a directory, for readers that do not know table formats.

Tasks write below `_staged`, which readers of Parquet ignore. A commit first writes one file below `_commits`
with the names of its files and its mark; then it moves the files to their final names. The next writer or
reader finishes a move that was interrupted, so a batch is complete, or will be. Maintenance writes the
content of all commits into the newest one and removes the others; for a moment a file may be named twice."""

import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.maintenance import Figures, Maintained, disk_bytes, maintained, sweep
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget
from barnabas.spark.tables.versions import Version

STAGED = "_staged"
COMMITS = "_commits"
SCHEMA = "_schema.arrow"


class ParquetStore:
    keeps_partition_columns = False

    def __init__(self, target: TableTarget) -> None:
        if "://" in target.path:
            raise TableError("Plain Parquet needs a local directory: choose delta for other paths.")
        self._target = target
        self._root = Path(target.path).absolute()
        self.staging = str(self._root / STAGED)

    def schema(self) -> pyarrow.Schema | None:
        path = self._root / COMMITS / SCHEMA
        return pyarrow.ipc.read_schema(pyarrow.py_buffer(path.read_bytes())) if path.exists() else None

    def widens(self, name: str, narrow: pyarrow.DataType, wide: pyarrow.DataType) -> bool:
        """Readers that take the schema of one file for that of all would fail."""
        return False

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
        # This check comes after the number was chosen: a batch that is committed in between takes the number.
        if self.last_batch(mark.query) >= mark.batch:
            return
        taken = {"marks": {mark.query: mark.batch}, "files": [file.path for file in files]}
        place = self._root / COMMITS / f"{newest + 1:020}.json"
        _write_whole(place, json.dumps(taken).encode(), is_new=True)
        self._move(taken["files"])

    def version(self) -> Version:
        raise TableError("Plain Parquet does not allow upsert: choose delta or iceberg.")

    def _commit_files(self) -> list[Path]:
        return sorted((self._root / COMMITS).glob("*.json"))

    def _commits(self) -> list[dict[str, Any]]:
        while True:
            # If maintenance has removed a commit since they were listed, another one has its content: list
            # again.
            with suppress(FileNotFoundError):
                return [json.loads(path.read_text()) for path in self._commit_files()]

    def _named(self) -> list[str]:
        return list(dict.fromkeys(name for commit in self._commits() for name in commit["files"]))

    def finish_moves(self) -> None:
        """Move the files of all commits to their final names."""
        if any((self._root / STAGED).rglob("*.parquet")):
            for commit in self._commits():
                self._move(commit["files"])

    def _move(self, files: Any) -> None:
        for name in files:
            staged, place = self._root / STAGED / name, self._root / name
            if staged.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                # Another process may have moved it.
                with suppress(FileNotFoundError):
                    staged.replace(place)

    def read(self) -> pyarrow.Table:
        # This module of Arrow imports pandas, which takes time, and tasks that write do not need it.
        from pyarrow import dataset

        self.finish_moves()
        names = self._named()
        schema = self.schema()
        if schema is None or not names:
            return pyarrow.table([], names=[]) if schema is None else schema.empty_table()
        partitioning = dataset.partitioning(
            pyarrow.schema([schema.field(name) for name in self._target.partition_by]), flavor="hive"
        )
        files = dataset.dataset(
            [str(self._root / name) for name in names],
            schema=schema,
            format="parquet",
            partitioning=partitioning,
            partition_base_dir=str(self._root),
        )
        return files.to_table()

    def count(self) -> int:
        rows: int = self.read().num_rows
        return rows

    def maintain(self, keep_days: float) -> Maintained:
        """Files that no commit names are removed when they are old; younger ones may belong to a running
        task."""
        return maintained(self._figures, lambda: self._maintain(keep_days))

    def _figures(self) -> Figures:
        return Figures(len(self._named()), disk_bytes(str(self._root)), len(self._commit_files()))

    def _maintain(self, keep_days: float) -> int:
        self.finish_moves()
        self._join_commits()
        return sweep(self._root, "*.parquet", [str(self._root / name) for name in self._named()], keep_days)

    def _join_commits(self) -> None:
        """Join all commits into the newest one; a commit that is written meanwhile has a higher number."""
        paths = self._commit_files()
        if len(paths) < 2:
            return
        marks: dict[str, int] = {}
        files: dict[str, None] = {}
        try:
            commits = [json.loads(path.read_text()) for path in paths]
        except FileNotFoundError as error:
            raise Conflict(f"Another process is maintaining {self._root} too.") from error
        for commit in commits:
            files.update(dict.fromkeys(commit["files"]))
            for query, batch in commit["marks"].items():
                marks[query] = max(batch, marks.get(query, -1))
        _write_whole(paths[-1], json.dumps({"marks": marks, "files": list(files)}).encode())
        for path in paths[:-1]:
            path.unlink(missing_ok=True)


def _write_whole(path: Path, data: bytes, *, is_new: bool = False) -> None:
    """Write a file so that it is complete or missing, even after a crash. With `is_new`, Conflict if it
    exists."""
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
        raise Conflict(f"Another writer has just written {path}.") from error
    finally:
        partial.unlink()
