"""The short way of a Produce: one plain batch for one partition that nobody else has to confirm.

Nearly all requests are of this kind. Whatever is not, or will be refused, gets None here and goes the
ordinary way (`produce.py`), which knows every form, version and error: both ways append the same and answer
the same bytes. Nothing has changed when None is given, so the ordinary way may try again what failed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.metadata import INTERNAL_TOPICS
from barnabas.errors import KafkaError
from barnabas.kernels.plain_frames import read_produce, write_produced
from barnabas.records.batch import TRANSACTIONAL_FLAG
from barnabas.records.validation import validate_plain

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.replication.partition import Partition

TOPIC_ID_VERSION_MIN = 13
ACKS_LEADER, ACKS_ALL = 1, -1


def produce_one(broker: Broker, frame: memoryview) -> bytearray | None:
    """The answer's frame, or None where the request has to go the ordinary way."""
    found = read_produce(frame)
    if found is None:
        return None
    version, correlation_id, acks, topic, index, start, size = found
    partition = _partition(broker, version, topic, index)
    if partition is None or not _confirms_alone(partition, acks):
        return None
    batch = validate_plain(frame[start : start + size], partition.rules, broker.clock.now_ms())
    if batch is None or batch.attributes & TRANSACTIONAL_FLAG:
        return None
    try:
        result = partition.append(batch)
    except KafkaError:
        return None
    broker.traffic.count_in(partition.topic_partition[0], size, batch.count)
    return write_produced(version, correlation_id, (topic, index), (result[0], result[2], result[3]))


def _partition(broker: Broker, version: int, topic: bytes, index: int) -> Partition | None:
    try:
        name = topic.decode() if version < TOPIC_ID_VERSION_MIN else broker.image.topic_names.get(topic)
    except UnicodeDecodeError:
        return None
    if name is None or name in INTERNAL_TOPICS:
        return None
    return broker.replicas.get(name, index)


def _confirms_alone(partition: Partition, acks: int) -> bool:
    """Whether an append is all that such acks ask for."""
    if not partition.is_leader or partition.log.offline:
        return False
    if acks == ACKS_ALL:
        return len(partition.isr) == 1 and partition.log.config.min_insync_replicas <= 1
    return acks == ACKS_LEADER
