"""What a check of the doctor found."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """`remedy` says what to do; there is one unless all is well."""

    check: str
    status: Status
    found: str
    remedy: str | None = None


def ok(check: str, found: str) -> Finding:
    return Finding(check, Status.OK, found)


def problem(check: str, found: str, remedy: str, *, is_needed: bool = True) -> Finding:
    """A failure if what was asked for needs it, otherwise a warning."""
    return Finding(check, Status.FAILED if is_needed else Status.WARNING, found, remedy)
