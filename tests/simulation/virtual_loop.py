"""An event loop whose time is virtual: when nothing is ready, its clock jumps to the next timer.

So minutes of timeouts take milliseconds, and a run depends on nothing but its seed. It has no sockets;
threads are replaced by calls."""

import asyncio
from asyncio import base_events
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class StuckError(Exception):
    """Everybody waits, and no timer is set."""


class _NoFiles:
    """The place of a selector: there are no files to wait for, so waiting is letting time pass."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise StuckError("all tasks wait, and no timer is set")
        self._loop.now += max(0.0, timeout)
        return []


class VirtualLoop(base_events.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self._selector = _NoFiles(self)
        # Timers at the same moment run in the order in which they were set.
        self._clock_resolution = 1e-9
        self.problems: list[str] = []
        self.set_exception_handler(lambda _, context: self.problems.append(repr(context)))

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        future = self.create_future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def cancel_all(self) -> None:
        """End all tasks, so that nothing is left when the loop is closed."""
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _process_events(self, events: list[Any]) -> None:
        assert not events

    def _write_to_self(self) -> None:
        """Nobody has to be woken: there are no threads."""


def run(loop: VirtualLoop, story: Coroutine[Any, Any, Result]) -> Result:
    """Run the story on the loop, and close it. An error that no task took is an error of the story."""
    asyncio.set_event_loop(loop)
    try:
        result = loop.run_until_complete(story)
        assert not loop.problems, loop.problems
        return result
    finally:
        loop.cancel_all()
        asyncio.set_event_loop(None)
        loop.close()
