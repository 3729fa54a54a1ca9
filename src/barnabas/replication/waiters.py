"""Waiting for an offset: the one primitive behind acks=all and long-poll fetches.

`when(offset, callback)` runs the callback in the same turn of the loop in which `advance` passes
the offset, so a parked fetch is answered by the append that feeds it. A wait holds for one leader epoch: the
partition ends all waits when its leadership changes, and then nobody can take a later leader's offset for
the one that was awaited. Owned by the event loop."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

# Called with True when the offset is reached, with False when the wait ended without it.
Callback: TypeAlias = Callable[[bool], None]


class Waiter:
    __slots__ = ("_waiters", "callback", "offset")

    def __init__(self, waiters: "Waiters", offset: int, callback: Callback) -> None:
        self._waiters = waiters
        self.offset = offset
        self.callback = callback

    def cancel(self) -> None:
        self._waiters.remove(self)


class Waiters:
    """Those who wait for one partition's offset to reach a value of their own.

    A plain dict, in the order of arrival: few wait on one partition at a time, and one that gives
    up (every idle consumer does, twice a second) leaves nothing behind. `waiting` is only to be read."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[Waiter, None] = {}

    def when(self, offset: int, callback: Callback) -> Waiter:
        waiter = Waiter(self, offset, callback)
        self.waiting[waiter] = None
        return waiter

    def remove(self, waiter: Waiter) -> None:
        self.waiting.pop(waiter, None)

    def advance(self, offset: int) -> None:
        """Wake all that wait for `offset` or less."""
        if self.waiting:
            self._wake([waiter for waiter in self.waiting if waiter.offset <= offset], reached=True)

    def end_all(self) -> None:
        """Wake everybody, because the partition was deleted, went away or changed its leader."""
        self._wake(list(self.waiting), reached=False)

    def _wake(self, due: list[Waiter], *, reached: bool) -> None:
        # All are taken out before any is called: a callback may park itself again, or cancel another.
        for waiter in due:
            del self.waiting[waiter]
        for waiter in due:
            waiter.callback(reached)

    def __len__(self) -> int:
        return len(self.waiting)


async def all_reached(places: Sequence[tuple[Waiters, int]], within_seconds: float) -> list[bool | None]:
    """Wait until every place has reached its offset or has ended the wait, or until the time is over.

    For each place: True if it was reached, False if the wait ended without it, None if time ran out."""
    if not places:
        return []
    done = asyncio.get_running_loop().create_future()
    outcomes: list[bool | None] = [None] * len(places)
    missing = len(places)

    def woken(place: int, reached: bool) -> None:
        nonlocal missing
        outcomes[place] = reached
        missing -= 1
        if not missing and not done.done():
            done.set_result(None)

    parked = [
        waiters.when(offset, lambda reached, place=place: woken(place, reached))  # type: ignore[misc]
        for place, (waiters, offset) in enumerate(places)
    ]
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done, within_seconds)
    finally:
        for waiter in parked:
            waiter.cancel()
    return outcomes
