"""The transactions this broker coordinates, and the markers that end them on the partitions it leads.

Once the end of a transaction is in the journal its markers are written, again and again until every partition
has one; then the shard is told, and journals that the transaction is complete. A coordinator that takes over
writes them anew: a marker that is there already ends nothing a second time."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators import Coordinator
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import Producer, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from barnabas.log.producers import Origin
from barnabas.metadata.topics import NewTopic
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, control_batch
from barnabas.records.validation import trusted
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.steps import MarkersToWrite, TransactionStep

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.config.values import BrokerConfig

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1
EPOCH_BUMP_VERSION = 2


class TransactionCoordinator(Coordinator[TransactionMachine]):
    def __init__(self, broker: Broker) -> None:
        settings = transaction_settings(broker.config)
        super().__init__(
            broker,
            transaction_topic(broker.config),
            lambda epoch: TransactionMachine(settings, broker.producer_ids.try_next, epoch),
            self._write_markers_of,
        )

    def _write_markers_of(self, shard: Shard[TransactionMachine], step: Step[Any]) -> None:
        if isinstance(step, TransactionStep):
            for markers in step.markers:
                self._write(shard, markers)

    def _write(self, shard: Shard[TransactionMachine], markers: MarkersToWrite) -> None:
        results = {partition: self.write_marker(partition, markers) for partition in markers.partitions}
        outcome = _Remaining(markers)
        try:
            shard.run(lambda machine, now_ms: machine.markers_written(markers, results, now_ms), outcome)
        except KafkaError as error:
            if not shard.is_active:
                # Another coordinator has the transaction now, and writes its markers.
                return
            logger.warning("cannot journal the end of %r yet: %s", markers.transactional_id, error)
        if outcome.markers is not None:
            again = outcome.markers
            asyncio.get_running_loop().call_later(RETRY_SECONDS, lambda: self._write(shard, again))

    def write_marker(self, place: TopicPartition, markers: MarkersToWrite) -> ErrorCode:
        """End a transaction on one partition; NONE too if that was done before, or the partition is gone."""
        if self._broker.image.partition(*place) is None:
            return ErrorCode.NONE
        try:
            self._append_marker(place, markers)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def _append_marker(self, place: TopicPartition, markers: MarkersToWrite) -> None:
        partition = self._broker.replicas.leader(*place)
        producer = Producer(markers.producer_id, markers.producer_epoch)
        offsets = self._broker.groups.shard(place.partition) if place.topic == OFFSETS_TOPIC else None
        if offsets is not None and not offsets.is_active:
            # Its replay might end before this marker and so miss it.
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        entry = partition.log.producers.entries.get(producer.id)
        if entry is not None and markers.transaction_version >= EPOCH_BUMP_VERSION:
            is_open = entry.transaction_first_offset >= 0
            if is_open and producer.epoch <= entry.epoch:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
            if not is_open and producer.epoch == entry.epoch:
                return
        batch = control_batch(
            COMMIT_MARKER if markers.is_commit else ABORT_MARKER,
            markers.coordinator_epoch,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            timestamp=self._broker.clock.now_ms(),
        )
        partition.append(trusted(batch), Origin.COORDINATOR)
        if offsets is not None:
            offsets.marker_written(producer, markers.is_commit)


class _Remaining:
    """What markers_written leaves to do; all of it while the journal could not take the outcome."""

    def __init__(self, markers: MarkersToWrite) -> None:
        self.markers: MarkersToWrite | None = markers

    def resolve(self, answer: Any) -> None:
        self.markers = answer if isinstance(answer, MarkersToWrite) else None


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    return TransactionSettings(
        max_timeout_ms=config["transaction.max.timeout.ms"],
        expiration_ms=config["transactional.id.expiration.ms"],
        expiration_check_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
    )


def transaction_topic(config: BrokerConfig) -> NewTopic:
    return NewTopic(
        TRANSACTIONS_TOPIC,
        config["transaction.state.log.num.partitions"],
        config["transaction.state.log.replication.factor"],
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
        },
    )
