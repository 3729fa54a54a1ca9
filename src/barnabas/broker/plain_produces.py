"""The short way of Produces that bring one plain batch each, for partitions that nobody else has to confirm.

Nearly all requests are of this kind, and several of them are answered in one call. Whatever is not, or will
be refused, is left to the ordinary way (`produce.py`), which knows every form, version and error: both ways
append the same and answer the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crc32c import crc32c

from barnabas.broker.handlers.produce import TOPIC_ID_VERSION_MIN
from barnabas.errors import KafkaError
from barnabas.ids import INTERNAL_TOPICS
from barnabas.kernels.batches import plain_batch
from barnabas.kernels.plain_frames import answer_produces

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.replication.partition import Partition


class PlainProduces:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._helpers = (self._find, plain_batch, crc32c, KafkaError)
        self._frame_bytes_max: int = broker.config["socket.request.max.bytes"]

    def answer(self, arrived: memoryview) -> tuple[int, int, bytearray]:
        """What was answered of the frames at the beginning: their bytes, their number, the answers."""
        broker = self._broker
        return answer_produces(
            arrived, self._frame_bytes_max, broker.replicas.found_plain, self._helpers, broker.clock.now_ms()
        )

    def _find(self, version: int, topic: bytes, index: int) -> Partition | None:
        """The partition, if clients may write to it and an append here is all that any acks ask for."""
        broker = self._broker
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
