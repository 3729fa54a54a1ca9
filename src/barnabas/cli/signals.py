"""Signals while a consumer polls."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client import Consumer


@contextmanager
def woken_by_signals(consumer: "Consumer", caught: list[int]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the poll instead of the program, so that the consumer can leave its group."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def wake(number: int, frame: FrameType | None) -> None:
        if caught:
            # The second signal: do not wait for the consumer to close.
            raise KeyboardInterrupt
        caught.append(number)
        consumer.wakeup()

    before = {number: signal.signal(number, wake) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
