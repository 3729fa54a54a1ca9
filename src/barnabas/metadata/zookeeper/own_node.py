"""Watches an ephemeral node of this session, and reports when it is gone or belongs to another session.

An operator may delete it, and a broker's next start may replace it. When the whole session expires, the
connection reports that."""

import asyncio
from collections.abc import Callable

from barnabas.metadata.zookeeper.connection import Connection
from barnabas.metadata.zookeeper.tasks import Tasks


class OwnNode:
    def __init__(
        self, connection: Connection, path: str, when_gone: Callable[[], None], tasks: Tasks
    ) -> None:
        self._connection = connection
        self._path = path
        self._when_gone = when_gone
        self._generation = connection.generation
        self._changed = asyncio.Event()
        self._task = tasks.start(self._run())

    def forget(self) -> None:
        """Report nothing any more."""
        if asyncio.current_task() is not self._task:
            self._task.cancel()

    async def _run(self) -> None:
        watch = self._connection.event_setter(self._changed)
        while True:
            stat = await self._connection.until_answered(
                lambda: self._connection.call("exists", self._path, watch)
            )
            if self._generation != self._connection.generation:
                return
            if stat is None or stat.owner_session_id != self._connection.session_id:
                self._when_gone()
                return
            await self._changed.wait()
            self._changed.clear()
