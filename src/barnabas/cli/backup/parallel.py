"""Runs the jobs of several partitions at the same time; after an error or Ctrl-C the others end soon, too."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Advance = Callable[[int], None]
Result = TypeVar("Result")


class _Stopped(Exception):
    """Another job has failed, or the user has pressed Ctrl-C."""


def in_parallel(jobs: Iterable[Callable[[Advance], Result]], count: int, advance: Advance) -> list[Result]:
    """The results in the order of the jobs, `count` of which run at the same time. Raises what the first one
    raises. A job calls the function that it gets, often, with what it has done since the last call."""
    is_stopped = threading.Event()

    def go_on(done: int) -> None:
        if is_stopped.is_set():
            raise _Stopped
        advance(done)

    with ThreadPoolExecutor(max(1, count)) as pool:
        running: list[Future[Result]] = [pool.submit(job, go_on) for job in jobs]
        try:
            return [each.result() for each in running]
        except BaseException:
            is_stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
