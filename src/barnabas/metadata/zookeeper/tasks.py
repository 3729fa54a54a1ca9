"""The tasks that a store runs in the background, ended when it closes."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas.metadata.store import StoreError

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


class Tasks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> "asyncio.Task[Result]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def run_to_completion(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Finish the work even if its caller is cancelled."""
        return await asyncio.shield(self.start(work))

    async def run_for_a_while(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        """Do the work, and return when it is done or after this time; then it goes on in the background.

        For what needs no answer: a node is removed now, or together with its session."""
        await asyncio.wait([self.start(work)], timeout=seconds)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreError):
            logger.debug("a task of the metadata store failed: %s", error)
        elif error is not None:
            logger.error("a task of the metadata store failed", exc_info=error)
