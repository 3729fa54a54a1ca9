"""The progress of running queries: rows, bytes, rates and lag, from Spark's reports. Prints nothing."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.spark.offsets import offsets_from_json, reported_bytes, reported_offsets
from barnabas.spark.queries import reports_since, rows_of

STARTING, PROCESSING, WAITING, DONE, FAILED = "starting", "processing", "waiting", "done", "failed"
STARTING_AGAIN = "starting again"
STATES = (STARTING, PROCESSING, WAITING, STARTING_AGAIN, DONE, FAILED)


@dataclass(slots=True)
class QueryProgress:
    """The progress of one query since it was started. `lag` is None until the first batch has ended; `bytes`
    are those in the log, an estimate, and None if they are not known."""

    name: str
    rows: int = 0
    rows_per_second: float = 0.0
    bytes: int | None = None
    bytes_per_second: float | None = None
    batch_ms: int = 0
    batches: int = 0
    processing_seconds: float = 0.0
    last_batch_time: float | None = None
    lag: dict[str, int] | None = None
    state: str = STARTING
    _last_batch: int = field(default=-1, repr=False)

    @property
    def lag_total(self) -> int | None:
        return None if self.lag is None else sum(self.lag.values())

    @property
    def seconds_behind(self) -> float | None:
        """About how long the query needs for the records after its last batch; None if it is not behind."""
        lag = self.lag_total
        return lag / self.rows_per_second if lag and self.rows_per_second else None

    def look(self, query: Any) -> None:
        """Read the reports of a query since the last look, and what it does now."""
        self.take(reports_since(query, self._last_batch))
        self.state = state_of(query)

    def take(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Add reports, the newest last; those that were added before are skipped."""
        for report in reports:
            batch = int(report["batchId"])
            self.lag = _lag(report)
            if batch <= self._last_batch:
                continue
            self._last_batch = batch
            self.batches += 1
            self._add(report)

    def _add(self, report: Mapping[str, Any]) -> None:
        self.batch_ms = int(report["durationMs"].get("triggerExecution", 0))
        seconds = max(self.batch_ms, 1) / 1000
        rows, batch_bytes = rows_of(report), _bytes(report)
        self.rows += rows
        self.rows_per_second = rows / seconds
        if batch_bytes is not None:
            self.bytes = (self.bytes or 0) + batch_bytes
            self.bytes_per_second = batch_bytes / seconds
        self.processing_seconds += seconds
        self.last_batch_time = time.time()


def state_of(query: Any) -> str:
    """What a query does, from Spark's sentence about it. One that has ended is done: the caller knows whether
    it failed."""
    if not query.isActive:
        return DONE
    sentence = str(query.status["message"])
    if "nitializing" in sentence:
        return STARTING
    return WAITING if sentence.startswith("Waiting") else PROCESSING


def _lag(report: Mapping[str, Any]) -> dict[str, int] | None:
    """How many records come after the last batch, by topic; None if no source reports it."""
    lag: dict[str, int] = {}
    for source in report["sources"]:
        end, latest = reported_offsets(source.get("endOffset")), reported_offsets(source.get("latestOffset"))
        ends = offsets_from_json(end)
        for partition, newest in offsets_from_json(latest).items():
            behind = max(newest - ends.get(partition, newest), 0)
            lag[partition.topic] = lag.get(partition.topic, 0) + behind
    return lag or None


def _bytes(report: Mapping[str, Any]) -> int | None:
    known = [reported_bytes(reported_offsets(source.get("latestOffset"))) for source in report["sources"]]
    counted = [each for each in known if each is not None]
    return sum(counted) if counted else None
