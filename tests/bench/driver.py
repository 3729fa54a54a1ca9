"""The driver: loads run in their own process, so that the table and its progress do not slow them down."""

import multiprocessing
import resource
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")


def raise_file_limit() -> None:
    """For thousands of connections: allow as many open files as possible, also for children."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Driver:
    def __init__(self) -> None:
        # Spawned, not forked: a fork would copy the locks of this process's threads and its memory.
        spawning = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=spawning, initializer=raise_file_limit)

    def run(
        self, load: Callable[Arguments, Outcome], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Outcome:
        return self.begin(load, *args, **kwargs).result()

    def begin(
        self, load: Callable[Arguments, Outcome], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> "Future[Outcome]":
        return self._pool.submit(load, *args, **kwargs)

    def close(self) -> None:
        self._pool.shutdown()
