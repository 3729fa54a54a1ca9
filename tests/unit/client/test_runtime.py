"""The I/O thread runs the work of other threads, and leaves no thread waiting when it stops."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from barnabas.client.errors import ClosedError, KafkaTimeoutError
from barnabas.client.runtime import IoThread


@pytest.fixture
def io() -> Iterator[IoThread]:
    thread = IoThread().start()
    yield thread
    thread.stop()


async def current_thread() -> threading.Thread:
    return threading.current_thread()


async def forever() -> None:
    await asyncio.Event().wait()


def test_coroutines_run_in_the_thread(io: IoThread) -> None:
    assert io.call(current_thread()) is not threading.current_thread()
    assert not io.is_current


def test_errors_are_raised_in_the_calling_thread(io: IoThread) -> None:
    async def fail() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        io.call(fail())


def test_a_timeout_cancels_the_work(io: IoThread) -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            cancelled.set()

    with pytest.raises(KafkaTimeoutError):
        io.call(work(), 0.02)
    assert cancelled.wait(5)


def test_a_timeout_error_of_the_work_itself_is_not_changed(io: IoThread) -> None:
    async def fail() -> None:
        raise KafkaTimeoutError("mine")

    with pytest.raises(KafkaTimeoutError, match="mine"):
        io.call(fail(), 5)


def test_waiting_inside_the_thread_is_refused(io: IoThread) -> None:
    async def wait_inside() -> None:
        io.call(forever())

    with pytest.raises(RuntimeError, match="callback"):
        io.call(wait_inside())


def test_stopping_cancels_waiting_calls_and_refuses_new_work(io: IoThread) -> None:
    waiting = io.run(forever())
    io.stop()
    assert waiting.cancelled()
    with pytest.raises(ClosedError):
        io.call(forever())
    io.call_soon(print, "never")
    io.stop()
