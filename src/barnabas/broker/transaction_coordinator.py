"""The transactions this broker coordinates, and the markers that end them.

When the end of a transaction is committed to the journal, its markers are written and repeated until every
partition has committed one. Then the machine journals that the transaction is complete. A new
coordinator writes all markers again: a marker that a partition already has changes nothing there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators import Coordinator
from barnabas.broker.later import Later
from barnabas.broker.marker_sender import MarkerSender
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import Producer, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from barnabas.metadata.topics import NewTopic
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, control_batch
from barnabas.records.validation import trusted
from barnabas.replication.partition import Partition
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.steps import MarkersToWrite, TransactionStep

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.config.values import BrokerConfig
    from barnabas.groups.machine import GroupMachine

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
        self._sender = MarkerSender(broker)

    async def close(self) -> None:
        await self._sender.close()
        await super().close()

    def _write_markers_of(self, shard: Shard[TransactionMachine], step: Step[Any]) -> None:
        if isinstance(step, TransactionStep):
            for markers in step.markers:
                self._write(shard, markers)

    def _write(self, shard: Shard[TransactionMachine], markers: MarkersToWrite) -> None:
        if not shard.is_active:
            # Another coordinator has the transaction now, and writes its markers.
            return
        results: dict[TopicPartition, ErrorCode] = {}

        def written(partition: TopicPartition, code: ErrorCode) -> None:
            results[partition] = code
            if len(results) == len(markers.partitions):
                self._report(shard, markers, results)

        elsewhere: dict[int, list[TopicPartition]] = {}
        for place in markers.partitions:
            partition = self._broker.image.partition(*place)
            if partition is None or not partition.has_leader or partition.leader == self._broker.id:
                self.write_marker(place, markers).then(partial(written, place))
            else:
                elsewhere.setdefault(partition.leader, []).append(place)
        for leader_id, places in elsewhere.items():
            self._sender.send(leader_id, markers, places, written)

    def _report(
        self,
        shard: Shard[TransactionMachine],
        markers: MarkersToWrite,
        results: dict[TopicPartition, ErrorCode],
    ) -> None:
        """Give the machine the results of the markers, and write again those that failed."""

        def write_again(remaining: MarkersToWrite) -> None:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, lambda: self._write(shard, remaining))

        try:
            shard.run(
                lambda machine, now_ms: machine.markers_written(markers, results, now_ms),
                _Remaining(markers, write_again),
            )
        except KafkaError as error:
            logger.warning("cannot journal the end of %r yet: %s", markers.transactional_id, error)
            write_again(markers)

    def write_marker(self, place: TopicPartition, markers: MarkersToWrite) -> Later:
        """End a transaction on a partition that this broker leads.

        The answer is an ErrorCode, given when the marker is committed. It is NONE, too, if the partition has
        the marker already or does not exist any more."""
        answer = Later()
        if self._broker.image.partition(*place) is None:
            answer.resolve(ErrorCode.NONE)
            return answer
        try:
            partition = self._append_marker(place, markers)
        except KafkaError as error:
            answer.resolve(error.code)
            return answer
        _resolve_when_committed(answer, partition)
        return answer

    def _append_marker(self, place: TopicPartition, markers: MarkersToWrite) -> Partition:
        partition = self._broker.gate.to_write_marker(*place)
        producer = Producer(markers.producer_id, markers.producer_epoch)
        offsets = self._offsets_shard(place.partition) if place.topic == OFFSETS_TOPIC else None
        entry = partition.log.producers.entries.get(producer.id)
        if entry is not None and markers.transaction_version >= EPOCH_BUMP_VERSION:
            is_open = entry.transaction_first_offset >= 0
            if is_open and producer.epoch <= entry.epoch:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
            if not is_open and producer.epoch == entry.epoch:
                return partition
        batch = control_batch(
            COMMIT_MARKER if markers.is_commit else ABORT_MARKER,
            markers.coordinator_epoch,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            timestamp=self._broker.clock.now_ms(),
        )
        partition.append(trusted(batch), from_client=False)
        if offsets is not None:
            offsets.marker_written(producer, markers.is_commit)
        return partition

    def _offsets_shard(self, index: int) -> Shard[GroupMachine]:
        """The shard that learns of a marker. Senders of markers know only the errors of partitions."""
        try:
            shard = self._broker.groups.shard(index)
        except KafkaError as error:
            # It was closed, or is not open yet, in a change of leaders.
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from error
        if not shard.is_active:
            # Its replay may already have passed the end of the log, and would miss this marker.
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return shard


def _resolve_when_committed(answer: Later, partition: Partition) -> None:
    end_offset = partition.log.log_end_offset

    def woken(is_committed: bool) -> None:
        answer.resolve(ErrorCode.NONE if is_committed else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    if partition.high_watermark >= end_offset:
        woken(True)
    else:
        partition.committed.when(end_offset, woken)


class _Remaining:
    """Takes the machine's answer to `markers_written`: the markers that must be written again, or none."""

    def __init__(self, markers: MarkersToWrite, write_again: Callable[[MarkersToWrite], None]) -> None:
        self._markers = markers
        self._write_again = write_again

    def resolve(self, answer: Any) -> None:
        if isinstance(answer, MarkersToWrite):
            self._write_again(answer)
        elif isinstance(answer, KafkaError):
            self._write_again(self._markers)


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    return TransactionSettings(
        max_timeout_ms=config["transaction.max.timeout.ms"],
        expiration_ms=config["transactional.id.expiration.ms"],
        expiration_check_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
    )


def transaction_topic(config: BrokerConfig) -> NewTopic:
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
        "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
    }
    if config["zookeeper.connect"] is not None:
        # A single broker could never have two replicas in sync.
        configs["min.insync.replicas"] = str(config["transaction.state.log.min.isr"])
    return NewTopic(
        TRANSACTIONS_TOPIC,
        config["transaction.state.log.num.partitions"],
        config["transaction.state.log.replication.factor"],
        configs=configs,
    )
