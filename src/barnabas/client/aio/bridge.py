"""Between a client's I/O thread and the event loop of its user: what is awaited here happens there.

The client has its own loop in its I/O thread, as its other form has: so heartbeats and requests go on while
the user's loop is busy. All that is waited for becomes a future of the user's loop; no thread waits."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from barnabas.client.errors import ClosedError, KafkaError, KafkaTimeoutError
from barnabas.client.producer.tables import BatchFuture
from barnabas.client.runtime import STOP_SECONDS_MAX, IoThread
from barnabas.client.types import RecordMetadata
from barnabas.kernels.record_append import RecordFuture

_T = TypeVar("_T")
Delivery = asyncio.Future[RecordMetadata]
# on_delivery: called with the result or None, and the error or None.
Tell = Callable[[Any, KafkaError | None], object]


def running_loop(what: str) -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(f"make the {what} in a coroutine: it belongs to the running event loop") from None


@contextlib.asynccontextmanager
async def within(seconds: float | None, complaint: str) -> AsyncIterator[None]:
    """KafkaTimeoutError when the time is over; a TimeoutError from inside stays what it is."""
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            yield
    except TimeoutError:
        if not bound.expired():
            raise
        raise KafkaTimeoutError(complaint) from None


async def run_on(io: IoThread, coroutine: Coroutine[Any, Any, _T], seconds: float | None = None) -> _T:
    """Run a coroutine on the I/O thread and wait for it here; whoever is cancelled cancels it there."""
    future = io.run(coroutine)
    try:
        async with within(seconds, f"no answer within {seconds} seconds"):
            return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ClosedError("the client was closed meanwhile") from None


async def stop(io: IoThread) -> None:
    """Stop the I/O thread without blocking the loop."""
    bell = Bell(asyncio.get_running_loop())
    io.stop_soon(bell.ring)
    await bell.wait(time.monotonic() + STOP_SECONDS_MAX)


class Bell:
    """Rung by any thread, waited for by one task of the loop. Many rings before a look are one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()
        self._is_told = False

    def ring(self) -> None:
        if not self._is_told:
            self._is_told = True
            # A loop that was closed has nobody who waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        self._is_told = False
        self._event.set()

    async def wait(self, deadline: float) -> bool:
        """Whether it rang since the last wait, or does by then."""
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Deliveries:
    """Brings the outcomes of records to futures of the loop; they cross over together, not one by one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[tuple[asyncio.Future[Any], Tell | None, Any, KafkaError | None]] = deque()
        self._is_told = False

    def future_of(self, sent: RecordFuture | BatchFuture, on_delivery: Tell | None) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        sent.add_callback(partial(self._arrive, future, on_delivery))
        return future

    def _arrive(
        self,
        future: asyncio.Future[Any],
        on_delivery: Tell | None,
        result: Any,
        error: KafkaError | None,
    ) -> None:
        self._arrived.append((future, on_delivery, result, error))
        if not self._is_told:
            self._is_told = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        self._is_told = False
        while self._arrived:
            future, on_delivery, result, error = self._arrived.popleft()
            _settle(future, result, error)
            if on_delivery is not None:
                # Whoever is told here need not look at the future.
                if error is not None and not future.cancelled():
                    future.exception()
                self._tell(on_delivery, result, error)

    def _tell(self, on_delivery: Tell, result: Any, error: KafkaError | None) -> None:
        try:
            on_delivery(result, error)
        except Exception as failure:
            self._loop.call_exception_handler({"message": "on_delivery failed", "exception": failure})


def _settle(future: asyncio.Future[Any], result: Any, error: KafkaError | None) -> None:
    # It may have been cancelled: the record is sent all the same, nobody wants to know.
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
