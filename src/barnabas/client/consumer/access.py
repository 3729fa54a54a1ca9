"""Keeps a consumer to one thread at a time. Only wakeup() may come from another."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from barnabas.client.errors import ClosedError, ConcurrentAccessError, WakeupError


class Access:
    """`with access:` around every method; the same thread may enter again, from a listener for example."""

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
                raise ConcurrentAccessError("a consumer is not for use by two threads at once")
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

    def _wants_out(self) -> bool:
        # close() goes on to its end: the group is to hear that this member leaves.
        return self._is_woken and not self.is_closed

    def check_wakeup(self) -> None:
        if self._wants_out():
            self._is_woken = False
            raise WakeupError("wakeup() was called")

    def wait(self, signal: threading.Condition, is_done: Callable[[], object], deadline: float) -> bool:
        """Whether it is done by then; a wakeup ends the wait with WakeupError."""
        with signal:
            timeout = max(0.0, deadline - time.monotonic())
            done = signal.wait_for(lambda: self._wants_out() or is_done(), timeout)
            self.check_wakeup()
            return bool(done)
