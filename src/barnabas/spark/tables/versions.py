"""A version of a table as an upsert needs it: its files, a reader for them, and a commit that replaces some.

The commit fails with Conflict if the table has changed since the version was loaded."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow

from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.target import Mark


class StoredFile(NamedTuple):
    """A file of a version. `bounds` are the smallest and the largest value of columns, where they are
    known; they do not count nulls. `deletes` are the files that say which of its rows are deleted."""

    path: str
    size: int
    bounds: Mapping[str, tuple[Any, Any]]
    deletes: tuple[str, ...] = ()


class FileReader(Protocol):
    """Reads files of a version. It is pickled for tasks."""

    def batches(self, path: str, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        """The rows of a file, always in the same order, with the types of the table."""


class Version(Protocol):
    schema: pyarrow.Schema
    files: list[StoredFile]

    def last_batch(self, query: str) -> int:
        """The last batch of a query in this version, or -1."""

    def reader(self, files: Iterable[StoredFile]) -> FileReader:
        """A reader for these files."""

    def replace(self, removed: Collection[StoredFile], added: Sequence[DataFile], mark: Mark) -> None:
        """Remove and add files and store the mark, all at once."""
