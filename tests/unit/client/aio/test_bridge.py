"""The bridge between the I/O thread and the user's loop: results, errors and cancellations."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.aio.bridge import Deliveries, Wakeup, run_on, stop, within
from barnabas.client.errors import ClosedError, ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.runtime import IoThread
from barnabas.client.types import TopicPartition

FAR_SECONDS = 30.0


@pytest.fixture
def io() -> Iterator[IoThread]:
    io = IoThread().start()
    yield io
    io.stop()


def test_results_and_errors_come_back(io: IoThread) -> None:
    async def answer() -> int:
        return threading.get_ident()

    async def refusal() -> None:
        raise KafkaTimeoutError("its own")

    async def scene() -> None:
        assert await run_on(io, answer()) != threading.get_ident()
        # A timeout error of the work itself keeps its message.
        with pytest.raises(KafkaTimeoutError, match="its own"):
            await run_on(io, refusal(), FAR_SECONDS)

    asyncio.run(scene())


def test_a_timeout_and_a_cancellation_end_the_work_on_the_io_thread(io: IoThread) -> None:
    begun, ended = threading.Event(), threading.Semaphore(0)

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(FAR_SECONDS)
        finally:
            ended.release()

    async def scene() -> None:
        with pytest.raises(KafkaTimeoutError, match="no answer within"):
            await run_on(io, work(), 0.01)
        begun.clear()
        task = asyncio.create_task(run_on(io, work()))
        assert await asyncio.to_thread(begun.wait, FAR_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert ended.acquire(timeout=FAR_SECONDS)


def test_closing_the_client_during_a_call_is_a_closed_error(io: IoThread) -> None:
    async def scene() -> None:
        task = asyncio.create_task(run_on(io, asyncio.sleep(FAR_SECONDS)))
        await asyncio.sleep(0.01)
        await stop(io)
        with pytest.raises(ClosedError, match="during the call"):
            await task
        with pytest.raises(ClosedError):
            await run_on(io, asyncio.sleep(0))

    asyncio.run(scene())


def test_a_timeout_error_from_inside_is_not_changed() -> None:
    async def scene() -> None:
        with pytest.raises(TimeoutError, match="of the socket"):
            async with within(FAR_SECONDS, "ours"):
                raise TimeoutError("of the socket")

    asyncio.run(scene())


def test_setting_a_wakeup_many_times_ends_one_wait() -> None:
    async def scene() -> None:
        wakeup = Wakeup(asyncio.get_running_loop())
        for _ in range(5):
            await asyncio.to_thread(wakeup.set)
        assert await wakeup.wait(time.monotonic() + FAR_SECONDS)
        assert not await wakeup.wait(time.monotonic() + 0.01)
        return wakeup

    wakeup = asyncio.run(scene())
    # The loop is closed, so this has no effect.
    wakeup.set()


def batch_of(count: int) -> tuple[ProducerBatch, list[Any]]:
    batch = ProducerBatch(TopicPartition("t", 0), 10_000, 0.0)
    return batch, [batch.append(1, None, b"v") for _ in range(count)]


def test_outcomes_reach_futures_and_callbacks_in_the_loop() -> None:
    async def scene() -> None:
        deliveries = Deliveries(asyncio.get_running_loop())
        calls: list[Any] = []
        batch, sent = batch_of(3)
        first = deliveries.future_of(
            sent[0], lambda *outcome: calls.append((threading.get_ident(), *outcome))
        )
        second, third = deliveries.future_of(sent[1], None), deliveries.future_of(sent[2], None)
        third.cancel()
        settled = Wakeup(asyncio.get_running_loop())
        batch.call_when_settled(settled.set)
        await asyncio.to_thread(batch.finish, 10, -1)
        assert await settled.wait(time.monotonic() + FAR_SECONDS)
        # The batch is reported as settled after the outcomes of its records.
        assert first.done() and second.done()
        assert [first.result().offset, second.result().offset] == [10, 11]
        assert calls == [(threading.get_ident(), first.result(), None)]

    asyncio.run(scene())


def test_errors_and_a_callback_that_fails() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        failures: list[Any] = []
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
        deliveries = Deliveries(loop)
        batch, sent = batch_of(2)

        def fail(*_: object) -> None:
            raise LookupError("of the user")

        with_callback, awaited = deliveries.future_of(sent[0], fail), deliveries.future_of(sent[1], None)
        batch.finish(error=KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
        with pytest.raises(KafkaError):
            await awaited
        assert isinstance(with_callback.exception(), KafkaError)
        assert [str(each) for each in failures] == ["of the user"]

    asyncio.run(scene())
