"""Waiting for an offset: the one primitive behind acks=all and long-poll fetches.

`when(offset, callback)` runs the callback in the same turn of the loop in which `advance` passes
the offset, so a parked fetch is answered by the append that feeds it. Owned by the event loop."""

import asyncio
from collections.abc import Callable, Sequence


class Waiter:
    __slots__ = ("_waiters", "callback", "offset")

    def __init__(self, waiters: "Waiters", offset: int, callback: Callable[[], None]) -> None:
        self._waiters = waiters
        self.offset = offset
        self.callback = callback

    def cancel(self) -> None:
        self._waiters.remove(self)


class Waiters:
    """Those who wait for one partition's offset to reach a value of their own.

    A plain dict, in the order of arrival: few wait on one partition at a time, and one that gives
    up (every idle consumer does, twice a second) leaves nothing behind. `waiting` is not for changing."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[Waiter, None] = {}

    def when(self, offset: int, callback: Callable[[], None]) -> Waiter:
        waiter = Waiter(self, offset, callback)
        self.waiting[waiter] = None
        return waiter

    def remove(self, waiter: Waiter) -> None:
        self.waiting.pop(waiter, None)

    def advance(self, offset: int) -> None:
        """Wake all that wait for `offset` or less."""
        if self.waiting:
            self._wake([waiter for waiter in self.waiting if waiter.offset <= offset])

    def wake_all(self) -> None:
        """Wake everybody, because the partition was deleted, went offline or changed its leader."""
        self._wake(list(self.waiting))

    def _wake(self, due: list[Waiter]) -> None:
        # All are taken out before any is called: a callback may park itself again, or cancel another.
        for waiter in due:
            del self.waiting[waiter]
        for waiter in due:
            waiter.callback()

    def __len__(self) -> int:
        return len(self.waiting)


async def all_reached(places: Sequence[tuple[Waiters, int]], within_seconds: float) -> None:
    """Return when every place reached its offset or was woken for good, or when the time is over."""
    done = asyncio.get_running_loop().create_future()
    missing = len(places)

    def reached() -> None:
        nonlocal missing
        missing -= 1
        if not missing and not done.done():
            done.set_result(None)

    parked = [waiters.when(offset, reached) for waiters, offset in places]
    try:
        await asyncio.wait_for(done, within_seconds)
    except TimeoutError:
        return
    finally:
        for waiter in parked:
            waiter.cancel()
