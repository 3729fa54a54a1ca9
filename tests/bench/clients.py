"""One Python client at work, in a process of its own.

`python -m tests.bench.clients WORK BOOTSTRAP TOPIC SECONDS` prints the number of records, the seconds they
took, and the CPU seconds of all threads of the process. Producers send values of 100 bytes to one partition
with acks=all, in batches of up to 1 MB that wait for 5 ms, as librdkafka does by default, or with the
defaults of each library; the time ends when all records are confirmed. Consumers read from the beginning; the
time begins with the first record."""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

VALUE = b"x" * 100
STEP = 1000
TABLE_ROWS = 50_000
BATCH_BYTES = 1_000_000
LINGER_MS = 5
LARGE_BATCHES = {"batch.size": BATCH_BYTES, "linger.ms": LINGER_MS}
PATIENCE_SECONDS = 20.0

Outcome = tuple[int, float, float]
Work = Callable[[str, str, float], Outcome]


class Clock:
    def __init__(self) -> None:
        self._start, self._cpu_start = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def cpu_seconds(self) -> float:
        return time.process_time() - self._cpu_start


class Tally:
    """Counts records. The first ones start the clock and are not counted.

    The CPU time is read only once, at the end: reading it is slow in a process with threads, and clients that
    return few records at a time would pay more for it than others."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clock = Clock()
        self._has_begun = False
        self._count, self._last_seconds, self._cpu_seconds = 0, 0.0, 0.0

    def add(self, count: int) -> bool:
        """Returns True when the measurement is complete."""
        if count and not self._has_begun:
            self._has_begun, self._clock = True, Clock()
        elif count:
            self._count += count
            self._last_seconds = self._clock.seconds
        elif self._clock.seconds - self._last_seconds > (1.0 if self._count else PATIENCE_SECONDS):
            return self._end()
        return self._has_begun and self._clock.seconds > self._seconds and self._end()

    def _end(self) -> bool:
        self._cpu_seconds = self._clock.cpu_seconds
        return True

    def outcome(self) -> Outcome:
        if not self._count:
            raise RuntimeError("nothing to read")
        return self._count, self._last_seconds, self._cpu_seconds or self._clock.cpu_seconds


def _produced(send_some: Callable[[], int], flush: Callable[[], object], seconds: float) -> Outcome:
    """Send for this long and wait for the rest; the warm-up is not counted."""
    send_some()
    flush()
    count = 0
    clock = Clock()
    while clock.seconds < seconds:
        count += send_some()
    flush()
    return count, clock.seconds, clock.cpu_seconds


def _consumed(counts: Iterator[int], seconds: float) -> Outcome:
    """Add up what arrives after the first records, until the time is over or nothing more comes."""
    tally = Tally(seconds)
    for count in counts:
        if tally.add(count):
            break
    return tally.outcome()


def own_send(bootstrap: str, topic: str, seconds: float, **settings: int) -> Outcome:
    from barnabas import Producer

    with Producer({"bootstrap.servers": bootstrap, **settings}) as producer:
        send = producer.send

        def some() -> int:
            for _ in range(STEP):
                send(topic, VALUE)
            return STEP

        return _produced(some, producer.flush, seconds)


def own_send_batch(bootstrap: str, topic: str, seconds: float) -> Outcome:
    import pyarrow as pa

    from barnabas import Producer

    table = pa.table({"value": [VALUE] * TABLE_ROWS})
    with Producer({"bootstrap.servers": bootstrap, **LARGE_BATCHES}) as producer:

        def some() -> int:
            producer.send_batch(topic, table)
            return TABLE_ROWS

        return _produced(some, producer.flush, seconds)


def confluent_produce(bootstrap: str, topic: str, seconds: float, **settings: int) -> Outcome:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, **settings})

    def some() -> int:
        for _ in range(STEP):
            try:
                producer.produce(topic, VALUE)
            except BufferError:
                producer.poll(0.1)
                producer.produce(topic, VALUE)
        producer.poll(0)
        return STEP

    return _produced(some, lambda: producer.flush(60), seconds)


def kafka_python_send(bootstrap: str, topic: str, seconds: float) -> Outcome:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, batch_size=BATCH_BYTES
    )

    def some() -> int:
        for _ in range(STEP):
            producer.send(topic, VALUE)
        return STEP

    outcome = _produced(some, producer.flush, seconds)
    producer.close()
    return outcome


def aiokafka_send(bootstrap: str, topic: str, seconds: float) -> Outcome:
    from aiokafka import AIOKafkaProducer

    async def run() -> Outcome:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
        )
        await producer.start()
        try:
            await producer.send_and_wait(topic, VALUE)
            count = 0
            clock = Clock()
            while clock.seconds < seconds:
                for _ in range(STEP):
                    await producer.send(topic, VALUE)
                count += STEP
            await producer.flush()
            return count, clock.seconds, clock.cpu_seconds
        finally:
            await producer.stop()

    return asyncio.run(run())


def _own_consumer(bootstrap: str, topic: str) -> Any:
    from barnabas import Consumer, TopicPartition

    consumer = Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def own_poll(bootstrap: str, topic: str, seconds: float) -> Outcome:
    def counts() -> Iterator[int]:
        while True:
            count = 0
            for record in consumer.poll(1.0):
                count += record.value is not None
            yield count

    with _own_consumer(bootstrap, topic) as consumer:
        return _consumed(counts(), seconds)


def own_iterate(bootstrap: str, topic: str, seconds: float) -> Outcome:
    from barnabas.client.errors import WakeupError

    with _own_consumer(bootstrap, topic) as consumer:
        tally = Tally(seconds)
        # Iterating does not end by itself: if the topic ends before the time is over, it must be stopped.
        ending = threading.Timer(seconds + PATIENCE_SECONDS, consumer.wakeup)
        ending.start()
        with contextlib.suppress(WakeupError):
            for count in _by_steps(consumer):
                if tally.add(count):
                    break
        ending.cancel()
        return tally.outcome()


def own_poll_arrow(bootstrap: str, topic: str, seconds: float) -> Outcome:
    def counts() -> Iterator[int]:
        while True:
            yield consumer.poll_arrow(1.0).num_rows

    with _own_consumer(bootstrap, topic) as consumer:
        return _consumed(counts(), seconds)


def _by_steps(records: Any) -> Iterator[int]:
    """Read records one by one and count them in steps: reading the clock must not cost more than a record."""
    count = 0
    for record in records:
        count += record.value is not None
        if count == STEP:
            yield count
            count = 0
    while True:
        time.sleep(0.1)
        yield 0


def _confluent_consumer(bootstrap: str, topic: str) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def confluent_poll(bootstrap: str, topic: str, seconds: float) -> Outcome:
    def counts() -> Iterator[int]:
        while True:
            count = 0
            for _ in range(STEP):
                message = consumer.poll(1.0)
                count += message is not None and message.value() is not None
            yield count

    consumer = _confluent_consumer(bootstrap, topic)
    outcome = _consumed(counts(), seconds)
    consumer.close()
    return outcome


def confluent_consume(bootstrap: str, topic: str, seconds: float) -> Outcome:
    def counts() -> Iterator[int]:
        while True:
            yield sum(message.value() is not None for message in consumer.consume(10_000, 1.0))

    consumer = _confluent_consumer(bootstrap, topic)
    outcome = _consumed(counts(), seconds)
    consumer.close()
    return outcome


def kafka_python_iterate(bootstrap: str, topic: str, seconds: float) -> Outcome:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=1000)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    outcome = _consumed(_by_steps(consumer), seconds)
    consumer.close()
    return outcome


def _aiokafka(bootstrap: str, topic: str, seconds: float, *, by_many: bool) -> Outcome:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def counts(consumer: AIOKafkaConsumer) -> AsyncIterator[int]:
        while by_many:
            batches = await consumer.getmany(timeout_ms=1000)
            yield sum(record.value is not None for records in batches.values() for record in records)
        count = 0
        async for record in consumer:
            count += record.value is not None
            if count == STEP:
                yield count
                count = 0

    async def run() -> Outcome:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await consumer.start()
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        tally = Tally(seconds)
        try:
            async with asyncio.timeout(seconds + PATIENCE_SECONDS):
                async for count in counts(consumer):
                    if tally.add(count):
                        break
        finally:
            await consumer.stop()
        return tally.outcome()

    return asyncio.run(run())


def aiokafka_iterate(bootstrap: str, topic: str, seconds: float) -> Outcome:
    return _aiokafka(bootstrap, topic, seconds, by_many=False)


def aiokafka_getmany(bootstrap: str, topic: str, seconds: float) -> Outcome:
    return _aiokafka(bootstrap, topic, seconds, by_many=True)


PRODUCING: dict[str, Work] = {
    "confluent-kafka produce": partial(
        confluent_produce, **LARGE_BATCHES, **{"queue.buffering.max.messages": 1_000_000}
    ),
    "kafka-python send": kafka_python_send,
    "aiokafka send": aiokafka_send,
    "ours send": partial(own_send, **LARGE_BATCHES),
    "ours send_batch": own_send_batch,
}
PRODUCING_BY_DEFAULT: dict[str, Work] = {
    "confluent-kafka produce, defaults": confluent_produce,
    "ours send, defaults": own_send,
}
CONSUMING: dict[str, Work] = {
    "confluent-kafka poll": confluent_poll,
    "confluent-kafka consume(10000)": confluent_consume,
    "kafka-python iterate": kafka_python_iterate,
    "aiokafka iterate": aiokafka_iterate,
    "aiokafka getmany": aiokafka_getmany,
    "ours poll": own_poll,
    "ours iterate": own_iterate,
    "ours poll_arrow": own_poll_arrow,
}


def main() -> None:
    work, bootstrap, topic, seconds = sys.argv[1:]
    print(*{**PRODUCING, **PRODUCING_BY_DEFAULT, **CONSUMING}[work](bootstrap, topic, float(seconds)))


if __name__ == "__main__":
    main()
