"""The I/O thread of a client: one event loop in a daemon thread that runs the work of other threads.

All network traffic of a client happens there. The user's thread passes coroutines and waits for futures.
Nothing here runs per record: threads exchange batches and fetched data, not records."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar, TypeVarTuple

from barnabas.client.errors import ClosedError, KafkaTimeoutError

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

STOP_SECONDS_MAX = 10.0


class IoThread:
    """Call `start()` first; `stop()` cancels running work. A forked child process must create its own."""

    def __init__(self, name: str = "barnabas-client") -> None:
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._ready = threading.Event()
        self._is_stopping = False
        self._when_ended: list[Callable[[], object]] = []
        self.explain: Callable[[], str] = str
        """The cause of a timeout, to be added to its message; a client sets it."""
        self.loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()

    def start(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread, for example in a callback. Then it must not wait for it."""
        return threading.current_thread() is self._thread

    @property
    def is_running(self) -> bool:
        return self._ready.is_set() and not self._is_stopping

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Start a coroutine on the loop. Any thread may use the future."""
        if not self.is_running:
            coroutine.close()
            raise ClosedError("the client is closed")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(self, coroutine: Coroutine[Any, Any, _T], timeout: float | None = None) -> _T:
        """Run a coroutine and wait for it. After `timeout` seconds, cancel it and raise KafkaTimeoutError."""
        if self.is_current:
            coroutine.close()
            raise RuntimeError("a callback must not call a method of its client that waits")
        future = self.run(coroutine)
        try:
            return future.result(timeout)
        except concurrent.futures.CancelledError:
            raise ClosedError("the client was closed during the call") from None
        except TimeoutError as error:
            if future.done() and not future.cancelled() and future.exception() is error:
                raise
            raise KafkaTimeoutError(f"got no answer within {timeout:g} s{self.explain()}") from None
        finally:
            # Also when the user interrupts the wait: nobody needs the result any more.
            future.cancel()

    def call_soon(self, callback: Callable[[*_Ts], object], *arguments: *_Ts) -> None:
        """Have the loop call the callback; does nothing if the loop has stopped."""
        # A check would not help: the loop may close between the check and the call.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback, *arguments)

    def stop(self, timeout: float = STOP_SECONDS_MAX) -> None:
        """Cancel running work, stop the loop and wait for the thread. May be called twice, by any thread."""
        if not self._ready.is_set():
            self.loop.close()
            return
        self._is_stopping = True
        self.call_soon(self.loop.stop)
        if not self.is_current:
            self._thread.join(timeout)

    def stop_soon(self, ended: Callable[[], object]) -> None:
        """As stop, but without blocking: the thread calls `ended` at its very end."""
        self._when_ended.append(ended)
        self._is_stopping = True
        self.call_soon(self.loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._ready.set)
        try:
            self.loop.run_forever()
            self._cancel_all()
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()
            for ended in self._when_ended:
                ended()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=STOP_SECONDS_MAX))
        # Closed transports call connection_lost of their protocols in the next turn of the loop.
        self.loop.run_until_complete(asyncio.sleep(0))
