"""What jobs and pipelines need to know about Spark's queries: their reports, and why they failed. Starts and
stops nothing."""

import json
from collections.abc import Mapping
from typing import Any

# Spark waits ten seconds for a Python process to connect, which is not enough on a busy machine. A query that
# failed for this reason may be started again: it goes on from its checkpoint.
LATE = "failed to connect back"
STARTS_MAX = 5


def was_late(error: BaseException) -> bool:
    return LATE in str(error)


def cause_of(error: BaseException) -> str:
    """The cause of a Spark error. Its text holds the stack traces of two languages; the last line that names
    an error is the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if ("Error: " in line or "Exception: " in line) and " at " not in line]
    return (named[-1] if named else lines[0] if lines else repr(error))[:500]


def reports_of(query: Any) -> list[dict[str, Any]]:
    """Spark's reports of a query as plain values, oldest first; Spark keeps the last hundred."""
    return [json.loads(report.json) for report in query.recentProgress]


def rows_of(report: Mapping[str, Any]) -> int:
    """The rows that a batch read. Reports of Spark Connect do not have the sum over all sources."""
    return sum(max(int(source["numInputRows"]), 0) for source in report["sources"])
