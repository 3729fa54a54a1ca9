"""What Spark's reports say about the rows of a batch."""

import json
from typing import Any

import pytest

from barnabas.spark.queries import rows_of


def report(latest: dict[str, Any], start: dict[str, Any] | None, end: dict[str, Any]) -> dict[str, Any]:
    offsets = {"latestOffset": latest, "startOffset": start, "endOffset": end}
    texts = {name: None if each is None else json.dumps(each) for name, each in offsets.items()}
    return {"sources": [{"numInputRows": 2, **texts}]}


def test_rows_that_spark_has_counted() -> None:
    assert rows_of(report({"orders": {"0": 9}}, {"orders": {"0": 1}}, {"orders": {"0": 9}})) == 2


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        ({"orders": {"0": 1}}, {"orders": {"0": 9, "1": 3}}, 11),
        # The first batch has its beginning in its end.
        (None, {"orders": {"0": 9}, "#initial": {"orders": {"0": 5}}}, 4),
    ],
)
def test_records_of_ranges(start: dict[str, Any] | None, end: dict[str, Any], rows: int) -> None:
    assert rows_of(report({"#ranges": True}, start, end)) == rows
