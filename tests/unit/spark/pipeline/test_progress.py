"""Progress from Spark's reports, and how it is shown."""

import json
from typing import Any

import pytest

from barnabas.cli.pipeline_screen import Lines, line_of
from barnabas.spark.pipeline.progress import DONE, PROCESSING, STARTING, WAITING, QueryProgress, state_of


def report(batch: int, rows: int, end: int, latest: int) -> dict[str, Any]:
    newest = {"orders": {"0": latest}, "#bytes": rows * 100}
    source = {"numInputRows": rows, "endOffset": {"orders": {"0": end}}, "latestOffset": json.dumps(newest)}
    return {"batchId": batch, "durationMs": {"triggerExecution": 500}, "sources": [source]}


class Query:
    """As Spark's, with these reports."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.isActive = True
        self.status = {"message": "Initializing sources"}

    class Report:
        def __init__(self, document: dict[str, Any]) -> None:
            self.json = json.dumps(document)

    @property
    def recentProgress(self) -> list[Any]:
        return [self.Report(each) for each in self.reports]

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.reports else None


def test_nothing_is_known_before_the_first_batch_has_ended() -> None:
    progress = QueryProgress("copies")
    progress.look(Query())
    assert (progress.state, progress.rows, progress.lag_total, progress.bytes) == (STARTING, 0, None, None)
    assert line_of(progress) == "starting"


def test_rows_bytes_rates_and_lag() -> None:
    query = Query()
    progress = QueryProgress("copies")
    query.reports = [report(7, 1_000, 1_000, 5_000), report(8, 2_000, 3_000, 5_000)]
    progress.look(query)
    assert (progress.batches, progress.rows, progress.bytes) == (2, 3_000, 300_000)
    assert (progress.rows_per_second, progress.bytes_per_second) == (4_000.0, 400_000.0)
    assert progress.lag == {"orders": 2_000}
    assert progress.seconds_behind == 0.5
    query.reports.append(report(9, 2_000, 5_000, 5_000))
    query.status = {"message": "Waiting for next trigger"}
    progress.look(query)
    progress.look(query)
    assert (progress.batches, progress.rows, progress.lag_total) == (3, 5_000, 0)
    assert progress.seconds_behind is None
    assert line_of(progress) == ("batch 3 in 0.5 s, 5,000 rows, 4,000 rows/s, 400.0 kB/s, lag 0, waiting")


def test_sources_other_than_topics_have_no_lag() -> None:
    source = {"numInputRows": 5, "endOffset": {"logOffset": 3}, "latestOffset": None}
    progress = QueryProgress("copies")
    progress.take([{"batchId": 0, "durationMs": {}, "sources": [source]}])
    assert (progress.rows, progress.lag, progress.bytes) == (5, None, None)


@pytest.mark.parametrize(
    "sentence, state",
    [
        ("Initializing sources", STARTING),
        ("Processing new data", PROCESSING),
        ("Getting offsets from barnabas", PROCESSING),
        ("Waiting for next trigger", WAITING),
        ("Waiting for data to arrive", WAITING),
    ],
)
def test_states(sentence: str, state: str) -> None:
    query = Query()
    query.status = {"message": sentence}
    assert state_of(query) == state
    query.isActive = False
    assert state_of(query) == DONE


def test_one_line_per_change(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("shop")
    progress = QueryProgress("copies")
    for state in (STARTING, STARTING, PROCESSING, WAITING, PROCESSING):
        progress.state = state
        lines.show([progress])
    progress.take([report(0, 10, 10, 10)])
    lines.show([progress])
    lines.show([progress])
    progress.state = DONE
    lines.show([progress])
    printed = capsys.readouterr().err.splitlines()
    assert [line.rpartition(", ")[2] for line in printed] == [
        "shop: copies: starting",
        "shop: copies: processing (no batch has ended yet)",
        "done",
    ]
