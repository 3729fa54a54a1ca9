"""Connects a client's I/O thread and the user's event loop: awaited here, run there.

The client has its own event loop in its I/O thread, as the blocking form has, so heartbeats and requests
continue while the user's loop is busy. Everything awaited is a future of the user's loop; no thread
blocks."""

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
# Called with the result or None, and the error or None.
OnDelivery = Callable[[Any, KafkaError | None], object]


def running_loop(what: str) -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(f"create the {what} inside a coroutine: it needs a running event loop") from None


@contextlib.asynccontextmanager
async def within(seconds: float | None, message: Callable[[], str]) -> AsyncIterator[None]:
    """Raise KafkaTimeoutError when the time is over; a TimeoutError from inside is not changed."""
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            yield
    except TimeoutError:
        if not bound.expired():
            raise
        raise KafkaTimeoutError(message()) from None


async def run_on(io: IoThread, coroutine: Coroutine[Any, Any, _T], seconds: float | None = None) -> _T:
    """Run a coroutine on the I/O thread and await it here. Cancelling here cancels it there."""
    future = io.run(coroutine)
    try:
        async with within(seconds, lambda: f"got no answer within {seconds:g} s{io.explain()}"):
            return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ClosedError("the client was closed during the call") from None


async def stop(io: IoThread) -> None:
    """Stop the I/O thread without blocking the loop."""
    wakeup = Wakeup(asyncio.get_running_loop())
    io.stop_soon(wakeup.set)
    await wakeup.wait(time.monotonic() + STOP_SECONDS_MAX)


class Wakeup:
    """Like asyncio.Event, but any thread may set it. One task of the loop waits for it; `wait` clears it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()
        self._is_scheduled = False

    def set(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            # If the loop is closed, nobody waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_scheduled = False
        self._event.set()

    async def wait(self, deadline: float) -> bool:
        """Wait until it is set, or until the deadline. Returns whether it was set."""
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Deliveries:
    """Passes the outcomes of records to futures of the loop, many at once instead of one by one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived: deque[tuple[asyncio.Future[Any], OnDelivery | None, Any, KafkaError | None]] = deque()
        self._is_scheduled = False

    def future_of(
        self, sent: RecordFuture | BatchFuture, on_delivery: OnDelivery | None
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        sent.add_callback(partial(self._arrive, future, on_delivery))
        return future

    def _arrive(
        self,
        future: asyncio.Future[Any],
        on_delivery: OnDelivery | None,
        result: Any,
        error: KafkaError | None,
    ) -> None:
        self._arrived.append((future, on_delivery, result, error))
        if not self._is_scheduled:
            self._is_scheduled = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_scheduled = False
        while self._arrived:
            future, on_delivery, result, error = self._arrived.popleft()
            _settle(future, result, error)
            if on_delivery is not None:
                # The callback gets the error: mark it as read, so that asyncio does not warn about the
                # future.
                if error is not None and not future.cancelled():
                    future.exception()
                self._call(on_delivery, result, error)

    def _call(self, on_delivery: OnDelivery, result: Any, error: KafkaError | None) -> None:
        try:
            on_delivery(result, error)
        except Exception as failure:
            self._loop.call_exception_handler({"message": "on_delivery failed", "exception": failure})


def _settle(future: asyncio.Future[Any], result: Any, error: KafkaError | None) -> None:
    # The future may have been cancelled; the record is sent anyway.
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
