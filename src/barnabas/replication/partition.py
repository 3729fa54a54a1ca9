"""One replica of a partition on this broker: its log, who leads it, and how far it is committed.

A leader with followers keeps what it knows about them in `leading` (replication/leading.py), which moves the
high watermark. A follower's log and high watermark are moved by replication/following/. Waiters wait
for the high watermark (`committed`) or for the end of the log (`appended`). Owned by the event loop."""

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition, Uuid
from barnabas.kernels.log_end import PartitionEnd, Permit
from barnabas.log.log import Log
from barnabas.metadata.parts import PartitionImage
from barnabas.records.validation import BatchRules
from barnabas.replication.leading import Leading
from barnabas.replication.ports import IsrProposal, Surroundings
from barnabas.replication.waiters import Waiters

NO_EPOCH = -1
NO_LEADER = -1
# Less than the session of a broker lasts: nobody gets the leaderships of a broker that was away for so short
# a time. Long enough for a client to come again.
CERTAIN_SECONDS = 2.0


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

    def __init__(
        self, topic_partition: TopicPartition, topic_id: Uuid, log: Log, surroundings: Surroundings
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.bytes_in = self.records_in = self.plain_produces = 0
        self.requests = RequestCounts()
        self.rules = BatchRules.of(log.config)
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.adding: tuple[int, ...] = ()
        self.removing: tuple[int, ...] = ()
        # None if this broker does not lead the partition, or has the only replica.
        self.leading: Leading | None = None
        self.committed = Waiters()
        self.appended = Waiters()
        self._surroundings = surroundings
        self._alone = (surroundings.broker_id,)
        self._permit: Permit | None = None
        log.when_offline = self.withdraw_permits

    @property
    def is_leader(self) -> bool:
        return self.leader == self._alone[0]

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: before the first transaction that is still open."""
        return self.log.last_stable_offset

    @property
    def knows_high_watermark(self) -> bool:
        """False after an election while the high watermark may be behind what an earlier leader has told
        clients: until it reaches the start of the new leader epoch."""
        return self.leading is None or self.high_watermark >= self.leading.epoch_start_offset

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
        """Take the leader, epochs, replicas and ISR of the newest metadata."""
        if image.partition_epoch < self.partition_epoch and image.leader_epoch <= self.leader_epoch:
            # The controller's answer to a proposal was here before the metadata.
            return
        self.withdraw_permits()
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        old_state = (self.partition_epoch, self.replicas, self.isr)
        self.replicas, self.isr = image.replicas, image.isr
        self.adding, self.removing = image.adding_replicas, image.removing_replicas
        self.leader, self.leader_epoch = image.leader, image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.log.applies_retention = self.is_leader
        if (was_leader, old_epoch) != (self.is_leader, self.leader_epoch):
            # Before the high watermark moves: nothing that was awaited under the old epoch counts as reached.
            self.end_waiting()
            self.leading = None
        if self.is_leader:
            self._lead(old_epoch, is_new=old_state != (self.partition_epoch, self.replicas, self.isr))
        else:
            self.is_alone = False

    def _lead(self, old_epoch: int, *, is_new: bool) -> None:
        if self.leader_epoch > old_epoch:
            self.log.leader_epochs.assign(self.leader_epoch, self.log.log_end_offset)
        if self.replicas == self._alone:
            self.leading = None
            self.is_alone = self.isr == self._alone
            self.wake_after_append()
            return
        if self.leading is None:
            self.leading = Leading(self, self._surroundings)
            is_new = True
        if is_new:
            # Not for metadata that is known: it would end a proposal that the controller may have taken.
            self.leading.take_metadata()

    # ---- the leader's side of replication: see leading.py

    def record_fetch(self, replica_id: int, broker_epoch: int, offset: int, log_start_offset: int) -> None:
        """A follower has fetched from `offset` under the current leader epoch: it has everything below."""
        if self.leading is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.leading.record_fetch(replica_id, broker_epoch, offset, log_start_offset)

    def is_led_since(self, moment: float) -> bool:
        """Whether this broker certainly led the partition at some time after `moment`."""
        return self.is_leader and (self.leading is None or self.leading.is_confirmed_since(moment))

    def check_still_led(self) -> None:
        """Refuse an answer after which a client would start over, if this broker may be a former leader: it
        does not have what its successor has. The client asks again, and by then it is known."""
        now = self._surroundings.clock.monotonic()
        if not self.is_led_since(now - CERTAIN_SECONDS):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def isr_accepted(self, proposal: IsrProposal, isr: tuple[int, ...], partition_epoch: int) -> None:
        """The controller's answer to a proposal, unless the metadata has overtaken it."""
        leading = self.leading
        if leading is None or not leading.accepted(proposal) or partition_epoch < self.partition_epoch:
            return
        self.withdraw_permits()
        self.isr, self.partition_epoch = isr, partition_epoch
        leading.take_metadata()

    def isr_refused(self, proposal: IsrProposal, code: ErrorCode) -> None:
        if self.leading is not None:
            self.leading.refused(proposal, code)

    def check_in_sync(self) -> None:
        """Find followers that are too slow or do not live any more. Called every half of
        replica.lag.time.max.ms, and when brokers have changed."""
        if self.leading is not None:
            self.leading.shrink()

    def set_alone(self, is_alone: bool) -> None:
        """Whether what is appended is committed at once, which permits tell the short ways."""
        if is_alone != self.is_alone:
            self.is_alone = is_alone
            self.withdraw_permits()

    # ---- both sides

    def raise_high_watermark(self, offset: int) -> None:
        """Move the high watermark up to `offset`, but not above the end of the log, and wake those who wait
        for it. It never moves back here: only a truncation lowers it."""
        offset = min(offset, self.log.log_end_offset)
        if offset > self.log.high_watermark:
            self.log.update_high_watermark(offset)
            self.committed.advance(offset)

    def update_config(self, config: TopicConfig) -> None:
        self.withdraw_permits()
        self.log.update_config(config)
        self.rules = BatchRules.of(config)
        if self.leading is not None:
            # min.insync.replicas may have changed.
            self.leading.update_high_watermark(self._surroundings.clock.monotonic())

    def replace_log(self, log: Log) -> None:
        """The same records in another directory."""
        self.withdraw_permits()
        self.log.when_offline = None
        self.log = log
        log.when_offline = self.withdraw_permits
        log.applies_retention = self.is_leader

    def let_go(self) -> None:
        """The partition is not served here any more."""
        self.leader = NO_LEADER
        self.is_alone = False
        self.log.when_offline = None
        self.withdraw_permits()
        self.end_waiting()
        self.leading = None

    def end_waiting(self) -> None:
        """Wake all who wait for an offset and have not got it."""
        self.committed.end_all()
        self.appended.end_all()
        if self.leading is not None:
            self.leading.deleted.end_all()

    # ---- rules that the gate applies

    @property
    def min_isr(self) -> int:
        """min.insync.replicas, but not more than there are replicas."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    def check_enough_in_sync(self) -> None:
        """acks=all is refused before anything is written when too few replicas are in sync."""
        if len(self.isr) < self.min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} replica(s) of {self.topic_partition} are in sync; "
                f"min.insync.replicas is {self.min_isr}",
            )

    @property
    def has_lost_in_sync(self) -> bool:
        """Whether so few replicas are in sync now that nothing is committed."""
        leading = self.leading
        return leading is not None and len(leading.maximal_isr) < self.min_isr

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
