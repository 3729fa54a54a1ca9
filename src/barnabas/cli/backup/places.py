"""Where a backup is: a directory, or an object store named by a URI such as s3://bucket/path.

A file appears under its name only when it is complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from barnabas.cli.failures import ToolError


class Directory:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        with (self._path / name).open("rb") as file:
            yield file

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with self.writing(name) as file:
            file.write(data)


class ObjectStore:
    """Through pyarrow, which finds the credentials where the tools of the store find them."""

    def __init__(self, uri: str) -> None:
        try:
            from pyarrow import fs
        except ImportError:
            raise ToolError(
                f"Object stores such as {uri} need pyarrow: install it with `pip install 'barnabas[arrow]'`."
            ) from None
        self._uri = uri
        try:
            self._files, self._root = fs.FileSystem.from_uri(uri)
        except (OSError, ValueError) as error:
            raise ToolError(f"{uri} is not the address of an object store: {error}") from error

    def __str__(self) -> str:
        return self._uri

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        with self._files.open_output_stream(f"{self._root}/{name}") as stream:
            yield cast(BinaryIO, stream)

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        with self._files.open_input_stream(f"{self._root}/{name}") as stream:
            yield cast(BinaryIO, stream)

    def read(self, name: str) -> bytes | None:
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with self._files.open_output_stream(f"{self._root}/{name}") as stream:
            stream.write(data)


def place_of(text: str) -> Directory | ObjectStore:
    return ObjectStore(text.rstrip("/")) if "://" in text else Directory(Path(text))
