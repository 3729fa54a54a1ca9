"""What jobs and pipelines need to know about Spark's queries: their reports. Starts and stops nothing."""

import json
from collections.abc import Mapping
from typing import Any

from barnabas.spark.offsets import RANGES, batch_start, offsets_from_json, reported_offsets

# Spark waits ten seconds for a Python process to connect, which is not enough on a busy machine. A query that
# failed for this reason may be started again: it goes on from its checkpoint.
LATE = "failed to connect back"
STARTS_MAX = 20


def was_late(error: BaseException) -> bool:
    return LATE in str(error)


def reports_of(query: Any) -> list[dict[str, Any]]:
    """Spark's reports of a query as plain values, oldest first; Spark keeps the last hundred."""
    return [json.loads(report.json) for report in query.recentProgress]


def reports_since(query: Any, batch: int) -> list[dict[str, Any]]:
    """The reports after that of a batch, and the last one in any case. Most often there is only that one:
    all hundred are read only if batches ended since."""
    last = query.lastProgress
    if last is None:
        return []
    newest = json.loads(last.json)
    if int(newest["batchId"]) <= batch + 1:
        return [newest]
    return [report for report in reports_of(query) if int(report["batchId"]) > batch]


def rows_of(report: Mapping[str, Any]) -> int:
    """The rows that a batch read. Reports of Spark Connect do not have the sum over all sources."""
    return sum(map(_rows, report["sources"]))


def _rows(source: Mapping[str, Any]) -> int:
    if not reported_offsets(source.get("latestOffset")).get(RANGES):
        return max(int(source["numInputRows"]), 0)
    # Spark has counted ranges. Offsets that are not records, such as the end of a transaction, count here.
    end = reported_offsets(source.get("endOffset"))
    begin = batch_start(reported_offsets(source.get("startOffset")), end)
    return sum(max(offset - begin.get(each, 0), 0) for each, offset in offsets_from_json(end).items())
