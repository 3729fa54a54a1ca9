"""One replica of a partition on this broker: its log, who leads it, and how far it is committed.

The replica set has one member today; the fields are those of a set of three. The high watermark is
the end of the shortest log in the ISR, and everything that waits hangs on it or on the log's end.
Owned by the event loop."""

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition, Uuid
from barnabas.kernels.log_end import PartitionEnd
from barnabas.log.log import AppendResult, Log
from barnabas.log.producers import Origin
from barnabas.metadata.parts import PartitionImage
from barnabas.records.validation import BatchRules, CheckedBatch
from barnabas.replication.waiters import Waiters

NO_EPOCH = -1


class RequestCounts:
    """What clients asked of one partition; read by /metrics. Produces that were answered the short way are
    counted in `PartitionEnd.plain_produces`."""

    __slots__ = ("bytes_out", "failed_fetches", "failed_produces", "fetches", "produces")

    def __init__(self) -> None:
        self.produces = self.failed_produces = self.fetches = self.failed_fetches = self.bytes_out = 0


class Partition(PartitionEnd):
    log: Log
    committed: Waiters
    appended: Waiters

    def __init__(self, topic_partition: TopicPartition, topic_id: Uuid, log: Log, broker_id: int) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.bytes_in = self.records_in = self.plain_produces = 0
        self.requests = RequestCounts()
        self.rules = BatchRules.of(log.config)
        self.plain_rules = self.rules.plain
        self.leader = -1
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.high_watermark = log.high_watermark
        self.committed = Waiters()
        self.appended = Waiters()
        self._broker_id = broker_id
        self._alone = (broker_id,)

    @property
    def is_leader(self) -> bool:
        return self.leader == self._broker_id

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: before the first transaction that is still open."""
        return self.log.last_stable_offset

    def follow(self, image: PartitionImage) -> None:
        """Take the leader, epoch and ISR of the newest metadata."""
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.replicas, self.isr = image.replicas, image.isr
        self.is_alone = image.isr == self._alone
        self.leader, self.leader_epoch = image.leader, image.leader_epoch
        if self.is_leader:
            if self.leader_epoch > old_epoch:
                self.log.leader_epochs.assign(self.leader_epoch, self.log.log_end_offset)
            self.grown()
        if (was_leader, old_epoch) != (self.is_leader, self.leader_epoch):
            self.wake_all()

    def update_config(self, config: TopicConfig) -> None:
        self.log.update_config(config)
        self.rules = BatchRules.of(config)
        self.plain_rules = self.rules.plain

    def append(self, batch: CheckedBatch, origin: Origin = Origin.CLIENT) -> AppendResult:
        """Append a validated batch as the leader, and let what waits for it go on."""
        result = self.log.append_as_leader(batch, self.leader_epoch, origin)
        if not result.duplicate:
            self.bytes_in += batch.size
            self.records_in += batch.count
            self.grown()
        return result

    def check_enough_in_sync(self) -> None:
        """acks=all is refused before anything is written when too few replicas are in sync."""
        if len(self.isr) < self.log.config.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} replica(s) of {self.topic_partition} are in sync; "
                f"min.insync.replicas is {self.log.config.min_insync_replicas}",
            )

    def check_epoch(self, client_epoch: int) -> None:
        """Fence a client whose metadata is older, and send back one whose metadata is newer."""
        if client_epoch == NO_EPOCH or client_epoch == self.leader_epoch:
            return
        if client_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def delete_records_before(self, offset: int) -> int:
        """Move the log start offset up to `offset` (-1: the high watermark); the new log start."""
        target = self.high_watermark if offset == -1 else offset
        if not self.log.log_start_offset <= target <= self.high_watermark:
            if not 0 <= target <= self.high_watermark:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            return self.log.log_start_offset
        self.log.delete_records_before(target)
        return self.log.log_start_offset

    def wake_all(self) -> None:
        self.committed.wake_all()
        self.appended.wake_all()
