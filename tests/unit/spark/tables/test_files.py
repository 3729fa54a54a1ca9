"""How rows become files: many small batches make few row groups, and partitions split them."""

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from barnabas.spark.tables import files
from barnabas.spark.tables.files import FileWriter


def groups_of(root: Path, name: str) -> list[int]:
    metadata = parquet.ParquetFile(root / name).metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def batch(count: int) -> pyarrow.Table:
    return pyarrow.table({"id": pyarrow.arange(0, count), "half": [str(row % 2) for row in range(count)]})


def test_small_batches_wait_for_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "GROUP_BYTES", 2 * batch(100).nbytes)
    writer = FileWriter(str(tmp_path), (), keep_partition_columns=True)
    for _ in range(5):
        writer.write(batch(100))
    (file,) = writer.close()
    assert file.rows == 500
    assert groups_of(tmp_path, file.path) == [200, 200, 100]


def test_rows_that_wait_for_many_files_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The ids of 62 rows: of each two halves of 50 rows, only one may wait.
    monkeypatch.setattr(files, "WAITING_BYTES_MAX", 62 * 8)
    writer = FileWriter(str(tmp_path), ("half",), keep_partition_columns=False)
    for _ in range(3):
        writer.write(batch(100))
    written = {file.partition: groups_of(tmp_path, file.path) for file in writer.close()}
    assert written.keys() == {(("half", "0"),), (("half", "1"),)}
    assert sorted(sorted(groups) for groups in written.values()) == [[50, 100], [50, 100]]
