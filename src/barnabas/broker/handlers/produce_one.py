"""The short way of a Produce: one plain batch for one partition that nobody else has to confirm.

Nearly all requests are of this kind. Whatever is not, or will be refused, gets None here and goes the
ordinary way (`produce.py`), which knows every form, version and error: both ways append the same and answer
the same bytes. Nothing has changed when None is given, so the ordinary way may try again what failed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crc32c import crc32c

from barnabas.broker.handlers.metadata import INTERNAL_TOPICS
from barnabas.errors import KafkaError
from barnabas.kernels.batches import plain_batch
from barnabas.kernels.plain_frames import read_produce, write_produced
from barnabas.records.batch import ATTRIBUTES_POSITION, NO_TIMESTAMP, TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.replication.partition import Partition

TOPIC_ID_VERSION_MIN = 13
# The leader, all in sync. (0 wants no answer.)
ANSWERED_ACKS = (-1, 1)


def produce_one(broker: Broker, frame: memoryview) -> bytearray | None:
    """The answer's frame, or None where the request has to go the ordinary way."""
    found = read_produce(frame)
    if found is None:
        return None
    version, correlation_id, acks, topic, index, start, size = found
    partition = broker.replicas.found_plain.get((topic, index)) or _find(broker, version, topic, index)
    if partition is None or partition.rules.plain is None or acks not in ANSWERED_ACKS:
        return None
    data = frame[start : start + size]
    batch = plain_batch(data, partition.rules.plain, broker.clock.now_ms())
    if batch is None or batch[6] & TRANSACTIONAL_FLAG or crc32c(data[ATTRIBUTES_POSITION:]) != batch[0]:
        return None
    try:
        first = partition.append_plain(data, batch)
    except KafkaError:
        return None
    if first is None:
        return None
    offsets = (first, NO_TIMESTAMP, partition.log.log_start_offset)
    return write_produced(version, correlation_id, (topic, index), offsets)


def _find(broker: Broker, version: int, topic: bytes, index: int) -> Partition | None:
    """The partition, if clients may write to it and an append here is all that any acks ask for."""
    try:
        name = topic.decode() if version < TOPIC_ID_VERSION_MIN else broker.image.topic_names.get(topic)
    except UnicodeDecodeError:
        return None
    if name is None or name in INTERNAL_TOPICS:
        return None
    partition = broker.replicas.get(name, index)
    if partition is None or not (partition.is_leader and partition.is_alone):
        return None
    if partition.log.config.min_insync_replicas > 1:
        return None
    broker.replicas.found_plain[topic, index] = partition
    return partition
