"""A running broker whose object a test can look at: real sockets, and a loop in a thread of this process."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from barnabas.broker.broker import Broker
from barnabas.broker.startup import broker_config
from barnabas.log.disk import Disk
from barnabas.net.spinning import new_event_loop

START_SECONDS_MAX = 30.0

_T = TypeVar("_T")


class VisibleBroker:
    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.port = broker.endpoints[0].port
        self._loop = loop

    def look(self, at: Callable[[Broker], _T]) -> _T:
        """The result of `at(broker)`, called on the broker's own loop."""

        async def call() -> _T:
            return at(self.broker)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(START_SECONDS_MAX)


@contextmanager
def visible_broker(
    directory: Path, overrides: Mapping[str, str] | None = None, disk: Disk | None = None
) -> Iterator[VisibleBroker]:
    loop = new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="visible-broker", daemon=True)
    thread.start()

    async def start() -> Broker:
        broker = Broker(broker_config(None, directory, 0, overrides), disk=disk)
        try:
            await broker.start()
        except BaseException:
            await broker.stop()
            raise
        return broker

    try:
        broker = asyncio.run_coroutine_threadsafe(start(), loop).result(START_SECONDS_MAX)
        try:
            yield VisibleBroker(broker, loop)
        finally:
            asyncio.run_coroutine_threadsafe(broker.stop(), loop).result(START_SECONDS_MAX)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_SECONDS_MAX)
        loop.close()
