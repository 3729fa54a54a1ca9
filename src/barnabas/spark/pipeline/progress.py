"""The progress of running queries: rows, rates and lag, from Spark's reports. Prints nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.spark.offsets import offsets_from_json
from barnabas.spark.queries import rows_of


@dataclass(slots=True)
class QueryProgress:
    """The progress of one query since it was started."""

    name: str
    rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    batches: int = 0
    lag: dict[str, int] = field(default_factory=dict)
    state: str = "starting"
    _last_batch: int = -1

    @property
    def lag_total(self) -> int:
        return sum(self.lag.values())

    def take(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Add reports, the newest last; those that were added before are skipped."""
        for report in reports:
            batch = int(report["batchId"])
            self.lag = _lag(report)
            if batch <= self._last_batch:
                continue
            self._last_batch = batch
            self.batches += 1
            self.rows += rows_of(report)
            rates = [source.get("processedRowsPerSecond") for source in report["sources"]]
            self.rows_per_second = sum(float(rate) for rate in rates if rate not in (None, "NaN"))
            self.batch_ms = int(report["durationMs"].get("triggerExecution", 0))


def _lag(report: Mapping[str, Any]) -> dict[str, int]:
    """How many records come after the last batch, by topic."""
    lag: dict[str, int] = {}
    for source in report["sources"]:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for partition, newest in latest.items():
            behind = max(newest - end.get(partition, newest), 0)
            lag[partition.topic] = lag.get(partition.topic, 0) + behind
    return lag


def _offsets(document: Any) -> dict[Any, int]:
    offsets = json.loads(document) if isinstance(document, str) else document
    return offsets_from_json(offsets) if isinstance(offsets, dict) else {}
