"""Allows only one thread at a time to use a consumer. Only wakeup() may be called by another thread."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from barnabas.client.errors import ClosedError, ConcurrentAccessError, WakeupError


class Access:
    """Every method runs inside `with access:`. The same thread may enter again, for example in a listener."""

    def __init__(self) -> None:
        self._owner: int | None = None
        self._depth = 0
        self._lock = threading.Lock()
        self.is_closed = False
        self._is_woken = False

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            if self._owner not in (None, thread):
                raise ConcurrentAccessError("a consumer must not be used by two threads at the same time")
            if self.is_closed and self._owner is None:
                raise ClosedError("the consumer is closed")
            self._owner = thread
            self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._owner = None

    def wakeup(self, signal: threading.Condition) -> None:
        with signal:
            self._is_woken = True
            signal.notify_all()

    def _should_wake(self) -> bool:
        # A wakeup does not interrupt close(): the consumer still has to leave the group.
        return self._is_woken and not self.is_closed

    def check_wakeup(self) -> None:
        if self._should_wake():
            self._is_woken = False
            raise WakeupError("wakeup() was called")

    def wait(self, signal: threading.Condition, is_done: Callable[[], object], deadline: float) -> bool:
        """Wait until `is_done` or the deadline. Returns whether it is done; wakeup() raises WakeupError."""
        with signal:
            timeout = max(0.0, deadline - time.monotonic())
            done = signal.wait_for(lambda: self._should_wake() or is_done(), timeout)
            self.check_wakeup()
            return bool(done)
