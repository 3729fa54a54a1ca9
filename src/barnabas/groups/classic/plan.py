"""Collects the parts of a group's Step, and makes the keys of its timers.

Several parts of a decision may set or cancel the same timer; the last one counts."""

from collections.abc import Hashable
from typing import Any, TypeVar

from barnabas.coordination.step import JournalRecord, Step, Timer, Waiter

Reply = TypeVar("Reply")

# A member must send a heartbeat before this runs out.
SESSION = "session"
# The time to join with a member id that was given out.
PENDING = "pending"
# The time to join again; in a group that was empty, the time to wait for more members.
JOIN = "join"
# The time to send SyncGroup.
SYNC = "sync"


def timer_key(group_id: str, kind: str, member_id: str | None = None) -> tuple[str, ...]:
    whole_group = ("group", group_id, kind)
    return whole_group if member_id is None else (*whole_group, member_id)


class Plan:
    def __init__(self, group_id: str, now_ms: int) -> None:
        self.now_ms = now_ms
        self._group_id = group_id
        self._records: list[JournalRecord] = []
        self._answers: list[tuple[Waiter, Any]] = []
        self._timers: dict[Hashable, int] = {}
        self._cancelled: dict[Hashable, None] = {}

    def record(self, record: JournalRecord) -> None:
        self._records.append(record)

    def answer(self, waiter: Waiter, answer: Any) -> None:
        self._answers.append((waiter, answer))

    def after(self, delay_ms: int, kind: str, member_id: str | None = None) -> None:
        key = timer_key(self._group_id, kind, member_id)
        self._cancelled.pop(key, None)
        self._timers[key] = delay_ms

    def cancel(self, kind: str, member_id: str | None = None) -> None:
        key = timer_key(self._group_id, kind, member_id)
        self._timers.pop(key, None)
        self._cancelled[key] = None

    def step(self, reply: Reply) -> Step[Reply]:
        return Step(
            reply,
            records=self._records,
            answers=self._answers,
            timers=[Timer(key, delay_ms) for key, delay_ms in self._timers.items()],
            cancelled=list(self._cancelled),
        )
