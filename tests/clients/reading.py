"""All records of a topic that a consumer with an isolation level may read."""

import time

from tests.clients import kafka_python_library as kafka_python
from tests.clients.consumers import CONSUMERS, ConsumerSetup, GroupConsumer

PATIENCE_SECONDS = 30.0


def everything(
    bootstrap: str,
    topic: str,
    partitions: int = 1,
    isolation: str = "read_committed",
    library: str = "",
    first: int = 0,
) -> list[bytes]:
    """kafka-python reads with assigned partitions. If a library is given, it joins its own group."""
    if library:
        return _by_group(CONSUMERS[library](bootstrap, _setup(topic, isolation)))
    ends = ends_of(bootstrap, topic, partitions, isolation, first)
    consumer = kafka_python.KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level=isolation,
        fetch_max_wait_ms=50,
        reconnect_backoff_max_ms=300,
    )
    try:
        return _by_assignment(consumer, topic, ends)
    finally:
        consumer.close()


def _setup(topic: str, isolation: str) -> ConsumerSetup:
    return ConsumerSetup(group=f"reads-{topic}-{time.monotonic_ns()}", topics=(topic,), isolation=isolation)


def ends_of(bootstrap: str, topic: str, partitions: int, isolation: str, first: int = 0) -> dict[int, int]:
    """The offset up to which a consumer with this isolation level may read now."""
    consumer = kafka_python.KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation)
    try:
        places = [kafka_python.TopicPartition(topic, number) for number in range(first, first + partitions)]
        return {place.partition: end for place, end in consumer.end_offsets(places).items()}
    finally:
        consumer.close()


def _by_assignment(consumer: kafka_python.KafkaConsumer, topic: str, ends: dict[int, int]) -> list[bytes]:
    places = [kafka_python.TopicPartition(topic, number) for number in ends]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(consumer.position(place) < ends[place.partition] for place in places):
        assert time.monotonic() < deadline, "the end is never reached"
        for records in consumer.poll(timeout_ms=100).values():
            values += [record.value for record in records]
    return values


def _by_group(consumer: GroupConsumer) -> list[bytes]:
    """Only markers may follow the last record, so stop when no record arrives for a while."""
    values: list[bytes] = []
    quiet_since: float | None = None
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while quiet_since is None or time.monotonic() - quiet_since < 1.0:
            owned = consumer.assignment()
            assert time.monotonic() < deadline, f"{len(values)} values and no end; {sorted(owned)} assigned"
            seen = consumer.poll(0.2)
            values += [each.value for each in seen]
            if seen:
                quiet_since = None
            elif quiet_since is None and consumer.assignment():
                quiet_since = time.monotonic()
        return values
    finally:
        consumer.close()
