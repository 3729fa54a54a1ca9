"""The speed of the last batch, from the files that Spark leaves."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.spark.pipeline.batch_rates import rows_per_second

BEGIN = 1_700_000_000


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    return tmp_path


def write(checkpoint: Path, batch: int, *sources: Any, seconds: float = 2.0) -> None:
    """A batch that has ended after this time."""
    about = {"batchWatermarkMs": 0, "batchTimestampMs": BEGIN * 1000, "conf": {}}
    lines = ["v1", json.dumps(about), *("-" if each is None else json.dumps(each) for each in sources)]
    (checkpoint / "offsets" / str(batch)).write_text("\n".join(lines))
    committed = checkpoint / "commits" / str(batch)
    committed.write_text('v1\n{"nextBatchWatermarkMs":0}')
    os.utime(committed, (BEGIN + seconds, BEGIN + seconds))


def test_the_records_between_two_batches_count(checkpoint: Path) -> None:
    write(checkpoint, 6, {"orders": {"0": 10, "1": 20}}, {"items": {"0": 5}})
    write(checkpoint, 7, {"orders": {"0": 110, "1": 220}}, {"items": {"0": 5}})
    assert rows_per_second(checkpoint, 7) == {"orders": 150, "items": 0}


def test_the_first_batch_says_where_it_began(checkpoint: Path) -> None:
    write(checkpoint, 0, {"orders": {"0": 110}, "#initial": {"orders": {"0": 100}}}, seconds=1.0)
    assert rows_per_second(checkpoint, 0) == {"orders": 10}


def test_other_sources_and_missing_files_have_no_rate(checkpoint: Path) -> None:
    assert rows_per_second(checkpoint, -1) == {}
    write(checkpoint, 3, {"sourceVersion": 1, "index": 4}, None)
    assert rows_per_second(checkpoint, 3) == {}
    (checkpoint / "commits" / "3").unlink()
    assert rows_per_second(checkpoint, 3) == {}
    (checkpoint / "offsets" / "3").write_text("v2\nanything")
    assert rows_per_second(checkpoint, 3) == {}
