"""Batches that wait to be sent: linger, memory, order."""

import threading
import time

import pytest

from barnabas.client.errors import ClosedError, ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.client.producer.accumulator import Accumulator, Limits, PartitionQueue, Record, TopicQueues
from barnabas.client.producer.batch import Packing, ProducerBatch, split_batch
from barnabas.records.builder import read_records

FAR = 1e6


class Story:
    def __init__(self, batch_bytes: int = 200, buffer_bytes: int = 1000) -> None:
        self.wakes = 0
        self.accumulator = Accumulator(Limits(batch_bytes, buffer_bytes, 900, 60.0), self._wake)
        self.topic = TopicQueues("t", 2)
        self.queue: PartitionQueue = self.topic.queues[0]

    def _wake(self) -> None:
        self.wakes += 1

    def send(self, value: bytes, deadline: float = FAR) -> ProducerBatch:
        future = self.accumulator.append(self.queue, Record(1, None, value, None), deadline)
        batch = future.batch
        assert isinstance(batch, ProducerBatch)
        return batch


def test_records_share_a_batch_until_it_is_full() -> None:
    story = Story()
    first = story.send(b"x" * 50)
    assert story.send(b"x" * 50) is first
    assert story.wakes == 1
    second = story.send(b"x" * 50)
    assert second is not first
    assert (first.is_open, second.is_open) == (False, True)
    assert story.wakes == 2
    assert story.accumulator.used_bytes == 400


def test_a_batch_is_ready_when_it_has_lingered_is_full_or_is_flushed() -> None:
    story = Story()
    batch = story.send(b"v")
    assert story.accumulator.ready_at(story.queue) == batch.created + 60
    story.accumulator.flushing = 1
    assert story.accumulator.ready_at(story.queue) == 0
    story.accumulator.flushing = 0
    story.send(b"x" * 150)
    assert story.accumulator.ready_at(story.queue) == 0


def test_taking_closes_the_batch_and_the_next_record_opens_another() -> None:
    story = Story()
    batch = story.send(b"v")
    assert story.accumulator.take(story.queue) is batch
    assert not batch.is_open
    assert story.queue not in story.accumulator.waiting
    assert story.send(b"v") is not batch
    assert story.queue in story.accumulator.waiting


def test_an_append_waits_until_memory_is_free() -> None:
    story = Story(buffer_bytes=400)
    first = story.send(b"x" * 90)
    story.send(b"x" * 90)
    with pytest.raises(KafkaTimeoutError, match=r"buffer\.memory"):
        story.send(b"x" * 90, deadline=time.monotonic())
    done: list[ProducerBatch] = []
    thread = threading.Thread(target=lambda: done.append(story.send(b"x" * 90)))
    thread.start()
    while not story.accumulator.blocked:
        time.sleep(0.001)
    assert not done
    story.accumulator.take(story.queue)
    story.accumulator.release(first)
    thread.join(20)
    assert done
    assert story.accumulator.used_bytes == 400


def test_a_callback_is_called_when_memory_is_free() -> None:
    story = Story(buffer_bytes=400)
    first = story.send(b"x" * 90)
    story.send(b"x" * 90)
    record = Record(1, None, b"x" * 90, None)
    assert story.accumulator.append_now(story.queue, record) is None
    calls: list[str] = []

    def on_space() -> None:
        calls.append("free")

    story.accumulator.add_space_callback(on_space)
    # Lingering batches are sent now, because somebody waits for memory.
    assert (story.accumulator.blocked, story.accumulator.ready_at(story.queue)) == (1, 0)
    story.accumulator.take(story.queue)
    story.accumulator.release(first)
    assert calls == ["free"]
    assert story.accumulator.append_now(story.queue, record) is not None
    story.accumulator.remove_space_callback(on_space)
    assert story.accumulator.blocked == 0
    story.accumulator.add_space_callback(on_space)
    story.accumulator.close()
    assert calls == ["free", "free"]
    with pytest.raises(ClosedError):
        story.accumulator.append_now(story.queue, record)


def test_the_memory_of_a_batch_is_freed_once() -> None:
    story = Story()
    batch = story.send(b"v")
    story.accumulator.release(batch)
    story.accumulator.release(batch)
    assert story.accumulator.used_bytes == 0


def test_closing_wakes_waiting_threads() -> None:
    story = Story(buffer_bytes=200)
    story.send(b"x" * 90)
    raised: list[type[BaseException]] = []

    def blocked() -> None:
        try:
            story.send(b"x" * 90)
        except ClosedError:
            raised.append(ClosedError)

    thread = threading.Thread(target=blocked)
    thread.start()
    while not story.accumulator.blocked:
        time.sleep(0.001)
    story.accumulator.close()
    thread.join(20)
    assert raised == [ClosedError]


def test_a_record_larger_than_a_request_is_refused_and_one_larger_than_a_batch_is_not() -> None:
    story = Story()
    with pytest.raises(KafkaError) as refused:
        story.send(b"x" * 900)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert story.send(b"x" * 600).count == 1
    assert story.accumulator.used_bytes > 600


def test_batches_to_be_sent_again_go_to_the_front_in_order() -> None:
    story = Story()
    batches = [story.send(b"x" * 90) for _ in range(3)]
    for number, batch in enumerate(batches[:2]):
        story.accumulator.take(story.queue)
        batch.base_sequence = number
        batch.attempts = 1
    story.accumulator.put_back(story.queue, [batches[1]])
    story.accumulator.put_back(story.queue, [batches[0]])
    assert list(story.queue.batches) == batches


def test_a_split_batch_keeps_its_records_its_futures_and_its_memory() -> None:
    story = Story(batch_bytes=900, buffer_bytes=5000)
    futures = [
        story.accumulator.append(story.queue, Record(number, None, b"%d" % number * 20, None), FAR)
        for number in range(10)
    ]
    batch = story.accumulator.take(story.queue)
    outcomes: list[object] = []
    futures[9].add_callback(lambda metadata, error: outcomes.append((metadata, error)))
    parts = split_batch(batch, 900)
    assert len(parts) >= 2
    story.accumulator.replace(batch, [part for _, part in parts])
    values = [row.value for _, part in parts for row in read_records(part.sealed(Packing()))]
    assert values == [b"%d" % number * 20 for number in range(10)]
    settled: list[str] = []
    batch.call_when_settled(lambda: settled.append("split"))
    assert settled == []
    batch.split_into(parts)
    batch.call_when_settled(lambda: settled.append("at once"))
    assert settled == ["split", "at once"]
    for start, part in parts:
        story.accumulator.release(part)
        part.finish(100 + start, -1)
    assert [future.result(0).offset for future in futures] == list(range(100, 110))
    assert len(outcomes) == 1
    assert story.accumulator.used_bytes == 0
    assert not story.accumulator.incomplete


def test_a_future_keeps_its_first_outcome_and_may_time_out_before() -> None:
    story = Story()
    future = story.accumulator.append(story.queue, Record(7, b"k", b"vv", None), FAR)
    errors: list[object] = []
    future.add_callback(lambda metadata, error: errors.append(error))
    assert not future.done()
    with pytest.raises(KafkaTimeoutError):
        future.result(0)
    error = KafkaError(ErrorCode.INVALID_RECORD)
    assert future.batch.finish(error=error)
    assert not future.batch.finish(5, -1)
    assert future.exception() is error
    with pytest.raises(KafkaError):
        future.result()
    future.add_callback(lambda metadata, error: errors.append(error))
    assert errors == [error, error]
