"""One replica of a partition on this broker: its log, who leads it, and how far it is committed.

The replica set has one member today; the fields are those of a set of three. The high watermark is
the end of the shortest log in the ISR, and everything that waits hangs on it or on the log's end.
Owned by the event loop."""

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition, Uuid
from barnabas.kernels.log_end import PartitionEnd, Permit
from barnabas.log.log import Log
from barnabas.metadata.parts import PartitionImage
from barnabas.records.validation import BatchRules
from barnabas.replication.waiters import Waiters

NO_EPOCH = -1
NO_LEADER = -1


class RequestCounts:
    """What clients asked of one partition; read by /metrics. Produces that were answered the short way are
    counted in `PartitionEnd.plain_produces`."""

    __slots__ = ("bytes_out", "failed_fetches", "failed_produces", "fetches", "produces")

    def __init__(self) -> None:
        self.produces = self.failed_produces = self.fetches = self.failed_fetches = self.bytes_out = 0


class Partition(PartitionEnd):
    """`append` is in kernels/log_end.py."""

    log: Log
    # These wait under the present leader epoch; a new epoch ends their wait.
    committed: Waiters
    appended: Waiters

    def __init__(self, topic_partition: TopicPartition, topic_id: Uuid, log: Log, broker_id: int) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.bytes_in = self.records_in = self.plain_produces = 0
        self.requests = RequestCounts()
        self.rules = BatchRules.of(log.config)
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.committed = Waiters()
        self.appended = Waiters()
        self._broker_id = broker_id
        self._alone = (broker_id,)
        self._permit: Permit | None = None
        log.when_offline = self.withdraw_permits

    @property
    def is_leader(self) -> bool:
        return self.leader == self._broker_id

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: before the first transaction that is still open."""
        return self.log.last_stable_offset

    # ---- what may change, and who holds a permit until it does

    def permit(self) -> Permit:
        """The permit that the gate gives to those who may have it."""
        if self._permit is None:
            stores_zstd = self.log.config.compression_type == "zstd"
            self._permit = Permit(self, self.leader_epoch, self.is_alone, self.rules.plain, stores_zstd)
        return self._permit

    def withdraw_permits(self) -> None:
        """Make all who hold a permit ask the gate again."""
        if self._permit is not None:
            self._permit.withdraw()
            self._permit = None

    def follow(self, image: PartitionImage) -> None:
        """Take the leader, epoch and ISR of the newest metadata."""
        self.withdraw_permits()
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.replicas, self.isr = image.replicas, image.isr
        self.is_alone = image.isr == self._alone
        self.leader, self.leader_epoch = image.leader, image.leader_epoch
        if (was_leader, old_epoch) != (self.is_leader, self.leader_epoch):
            # Before the high watermark moves: nothing that was awaited under the old epoch counts as reached.
            self.end_waiting()
        if self.is_leader:
            if self.leader_epoch > old_epoch:
                self.log.leader_epochs.assign(self.leader_epoch, self.log.log_end_offset)
            self.wake_after_append()

    def update_config(self, config: TopicConfig) -> None:
        self.withdraw_permits()
        self.log.update_config(config)
        self.rules = BatchRules.of(config)

    def let_go(self) -> None:
        """The partition is not served here any more."""
        self.leader = NO_LEADER
        self.log.when_offline = None
        self.withdraw_permits()
        self.end_waiting()

    def end_waiting(self) -> None:
        """Wake all who wait for an offset and have not got it."""
        self.committed.end_all()
        self.appended.end_all()

    # ---- rules that the gate applies

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
