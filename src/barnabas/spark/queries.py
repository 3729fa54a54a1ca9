"""What jobs and pipelines need to know of Spark's queries: their reports, why they failed, whether it was
only a process that was late. Reads what Spark says; starts and stops nothing."""

import json
from collections.abc import Mapping
from typing import Any

# Spark gives a Python process ten seconds to answer, which are not enough on a busy machine. A query whose
# process was late may be started again: it goes on from its checkpoint, as after any stop.
LATE = "failed to connect back"
STARTS_MAX = 5


def was_late(error: BaseException) -> bool:
    return LATE in str(error)


def cause_of(error: BaseException) -> str:
    """Spark's errors carry the traces of two languages; the cause stands in the last line that names one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if ("Error: " in line or "Exception: " in line) and " at " not in line]
    return (named[-1] if named else lines[0] if lines else repr(error))[:500]


def reports_of(query: Any) -> list[dict[str, Any]]:
    """Spark's reports of a query as plain values, oldest first; Spark keeps the last hundred."""
    return [json.loads(report.json) for report in query.recentProgress]


def rows_of(report: Mapping[str, Any]) -> int:
    """The rows that a batch read. Spark Connect leaves the sum over all sources out of its reports."""
    return sum(max(int(source["numInputRows"]), 0) for source in report["sources"])
