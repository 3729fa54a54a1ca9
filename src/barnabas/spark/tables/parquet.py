"""Plain Parquet files in a directory, for readers that know nothing of tables.

Tasks write below `_staged`, which readers of Parquet pass over. A commit first writes down, in one file
under `_commits`, which files it takes and its mark; then it moves them to their places. Whoever comes next
finishes a move that was cut short, so that a batch is there whole or will be."""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import dataset

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.target import Mark, TableError, TableTarget

STAGED = "_staged"
COMMITS = "_commits"
SCHEMA = "_schema.arrow"
DAY_SECONDS = 86_400


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
        marks = [commit["batch"] for commit in self._commits() if commit["query"] == query]
        return max(marks, default=-1)

    def append(self, files: Sequence[DataFile], mark: Mark) -> None:
        numbers = [int(path.stem) for path in (self._root / COMMITS).glob("*.json")]
        taken = {"query": mark.query, "batch": mark.batch, "files": [file.path for file in files]}
        place = self._root / COMMITS / f"{max(numbers, default=-1) + 1:020}.json"
        _write_whole(place, json.dumps(taken).encode())
        self._move(taken["files"])

    def upsert(self, rows: Any, deleted: Any, mark: Mark) -> None:
        raise TableError("Plain Parquet cannot be upserted: choose delta or iceberg.")

    def _commits(self) -> Iterator[dict[str, Any]]:
        for path in sorted((self._root / COMMITS).glob("*.json")):
            commit: dict[str, Any] = json.loads(path.read_text())
            yield commit

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
                staged.replace(place)

    def read(self) -> pyarrow.Table:
        self.finish_moves()
        names = [name for commit in self._commits() for name in commit["files"]]
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

    def maintain(self, keep_days: float) -> tuple[int, int]:
        """Files that no commit names are swept once they are old: younger ones may be of a task that runs."""
        self.finish_moves()
        named = {name for commit in self._commits() for name in commit["files"]}
        found = list(self._root.rglob("*.parquet"))
        limit = time.time() - keep_days * DAY_SECONDS
        swept = [
            path
            for path in found
            if str(path.relative_to(self._root)) not in named and path.stat().st_mtime <= limit
        ]
        for path in swept:
            path.unlink()
        return len(found), len(found) - len(swept)


def _write_whole(path: Path, data: bytes) -> None:
    """A file that is there whole or not at all, also after a crash."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
