"""Sends dead letters back to the topics they came from: each once, in transactions, without Spark.

The offsets of a group show what was sent, so an interrupted replay goes on where it stopped. A transaction
belongs to one cluster: letters for a topic of another cluster are sent before the transaction ends, so after
a failure some may be sent twice."""

from collections import Counter
from typing import NamedTuple

from barnabas.client import Consumer, Producer
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.kernels.record_decode import ConsumerRecord
from barnabas.spark.dead_letter_headers import OURS, STEP_HEADER, TOPIC_HEADER
from barnabas.spark.pipeline.definition import Pipeline

POLL_SECONDS = 5.0
REPLAYED_HEADER = "barnabas.replayed"


class Replayed(NamedTuple):
    sent: dict[str, int]
    without_origin: int


def replay(pipeline: Pipeline, *, step: str | None = None, dry_run: bool = False) -> Replayed:
    """Send all letters that were not sent before, or only those of `step`."""
    group = f"{pipeline.name}-replay-dlq"
    settings = pipeline.cluster(None).settings
    reading = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    sent: Counter[str] = Counter()
    left = 0
    with Consumer({**settings, **reading, "isolation.level": "read_committed"}) as consumer:
        ends = _assign(consumer, str(pipeline.dead_letters))
        producer = None if dry_run else _producer(settings, group)
        others = _Others(pipeline)
        try:
            while any(consumer.position(each) < end for each, end in ends.items()):
                records = [each for each in consumer.poll(POLL_SECONDS) if each.offset < ends[_place(each)]]
                chosen = [each for each in records if step is None or _header(each, STEP_HEADER) == step]
                targets = [(each, _header(each, TOPIC_HEADER)) for each in chosen]
                left += sum(1 for _, topic in targets if topic is None)
                sent.update(topic for _, topic in targets if topic is not None)
                if producer is not None and records:
                    letters = others.sent(targets)
                    _send(producer, consumer, letters)
        finally:
            others.close()
            if producer is not None:
                producer.close()
    return Replayed(dict(sent), left)


class _Others:
    """Producers for the other clusters of a pipeline, made when they are needed."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._producers: dict[str, Producer] = {}

    def sent(self, targets: list[tuple[ConsumerRecord, str | None]]) -> list[tuple[ConsumerRecord, str]]:
        """Send the letters of other clusters; returns those for the pipeline's own."""
        own = []
        for letter, topic in targets:
            cluster = (
                None if topic is None else self._pipeline.cluster_of(topic, _header(letter, STEP_HEADER))
            )
            if cluster is not None and topic is not None:
                _send_one(self._producer(cluster), letter, topic)
            elif topic is not None:
                own.append((letter, topic))
        for producer in self._producers.values():
            producer.flush()
        return own

    def _producer(self, cluster: str) -> Producer:
        if cluster not in self._producers:
            self._producers[cluster] = Producer(self._pipeline.cluster(cluster).settings)
        return self._producers[cluster]

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close()


def _assign(consumer: Consumer, topic: str) -> dict[TopicPartition, int]:
    partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    return consumer.end_offsets(partitions)


def _producer(settings: dict[str, str], group: str) -> Producer:
    producer = Producer({**settings, "transactional.id": group})
    producer.init_transactions()
    return producer


def _place(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _header(record: ConsumerRecord, name: str) -> str | None:
    for header, value in record.headers:
        if header == name and value is not None:
            return value.decode(errors="replace")
    return None


def _send(producer: Producer, consumer: Consumer, letters: list[tuple[ConsumerRecord, str]]) -> None:
    """Send the letters and commit the offsets after them, in one transaction."""
    producer.begin_transaction()
    for letter, topic in letters:
        _send_one(producer, letter, topic)
    offsets = {each: OffsetAndMetadata(consumer.position(each)) for each in consumer.assignment()}
    producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
    producer.commit_transaction()


def _send_one(producer: Producer, letter: ConsumerRecord, topic: str) -> None:
    kept = [(name, value) for name, value in letter.headers if name not in OURS]
    headers = [*kept, (REPLAYED_HEADER, f"{letter.partition}:{letter.offset}".encode())]
    producer.send(topic, letter.value, letter.key, headers=headers)
