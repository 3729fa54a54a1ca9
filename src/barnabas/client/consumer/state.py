"""The partitions that a consumer reads and its position in each; shared by its two threads.

The user's thread assigns, seeks and takes records. The I/O thread looks up positions and adds fetched data.
Both hold `signal` while they change anything. Changing a position increases the version of the partition, so
that answers to older requests are recognised and dropped."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from barnabas.client.consumer.fetched import Fetched
from barnabas.client.types import TopicPartition
from barnabas.ids import ZERO_UUID

# The lookups that may be needed before a partition can be read.
COMMITTED = "committed"
RESET = "reset"

# Fetched answers per partition that wait for the user: enough that there is always a next one.
BUFFERS_MAX = 3

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class Signal(threading.Condition):
    """A condition that also calls listeners, so that event loops can wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Callable[[], object]] = []

    def notify_all(self) -> None:
        super().notify_all()
        for listener in list(self.listeners):
            listener()


class PartitionState:
    __slots__ = (
        "buffers",
        "epoch",
        "fetch_offset",
        "high_watermark",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "lookup",
        "offset",
        "partition",
        "paused",
        "preferred_node",
        "preferred_until",
        "reset_timestamp",
        "retry_at",
        "topic_id",
        "version",
    )

    def __init__(self, partition: TopicPartition, lookup: str | None = COMMITTED) -> None:
        self.partition = partition
        self.offset: int | None = None  # the offset of the next record for the user
        self.epoch = -1  # the leader epoch of the record before that
        self.fetch_offset = -1  # the offset of the next fetch: after the data in the buffers
        self.leader_epoch = -1  # the epoch of the leader whose log the position was last checked against
        self.topic_id = ZERO_UUID  # the topic for which the position was checked
        self.version = 0
        self.lookup = lookup
        self.reset_timestamp: int | None = None
        self.paused = False
        self.buffers: deque[Fetched] = deque()
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.retry_at = 0.0
        # The replica that the leader has asked this consumer to read from, and until when (KIP-392).
        self.preferred_node = -1
        self.preferred_until = 0.0

    def move_to(self, offset: int, epoch: int = -1) -> None:
        """Set the position, and drop the data fetched for another one."""
        self.offset = self.fetch_offset = offset
        self.epoch = epoch
        self.leader_epoch = -1
        self.topic_id = ZERO_UUID
        self.lookup = None
        self.reset_timestamp = None
        self.version += 1
        self.buffers.clear()

    def look_up(self, lookup: str, timestamp: int | None = None) -> None:
        """Have the I/O thread look up the position; without `timestamp`, auto.offset.reset decides."""
        self.offset = None
        self.fetch_offset = -1
        self.lookup = lookup
        self.reset_timestamp = timestamp
        self.version += 1
        self.buffers.clear()

    def lag(self, read_committed: bool) -> int | None:
        end = self.last_stable_offset if read_committed else self.high_watermark
        return None if self.offset is None or end < 0 else max(0, end - self.offset)

    def lead(self) -> int | None:
        start = self.log_start_offset
        return None if self.offset is None or start < 0 else max(0, self.offset - start)


class Assignments:
    """The partitions that a consumer reads now. `signal` is notified of all that a poll may wait for."""

    def __init__(self) -> None:
        self.signal = Signal()
        self.states: dict[TopicPartition, PartitionState] = {}
        self.errors: deque[Exception] = deque()
        self.wake: Callable[[], object] = bool

    def replace(self, partitions: Iterable[TopicPartition], lookup: str | None = COMMITTED) -> None:
        """Read exactly these partitions; those that stay keep their position."""
        with self.signal:
            kept = self.states
            self.states = {each: kept.get(each) or PartitionState(each, lookup) for each in partitions}
        self.wake()

    def fail(self, error: Exception) -> None:
        """Have the next poll raise the error. The same error is kept only once."""
        with self.signal:
            if str(error) not in map(str, self.errors):
                self.errors.append(error)
            self.signal.notify_all()

    def raise_error(self) -> None:
        if self.errors:
            with self.signal:
                raise self.errors.popleft()

    def put(self, state: PartitionState, version: int, offset: int, fetched: Fetched) -> None:
        """Add what was fetched from `offset` on, unless the position has changed since the request or another
        fetch was faster: after a change of leader, the old and the new one may both answer."""
        end = fetched.end_offset()
        with self.signal:
            if state.version != version or state.fetch_offset != offset:
                return
            if self.states.get(state.partition) is state:
                state.buffers.append(fetched)
                state.fetch_offset = end
                self.signal.notify_all()

    def lookup_failed(self, state: PartitionState, version: int, lookup: str | None) -> bool:
        """The lookup found no position: start the next `lookup`. False if the position has changed since."""
        with self.signal:
            if state.version != version:
                return False
            state.lookup = lookup
            return True

    def set_position(self, state: PartitionState, version: int, offset: int, epoch: int) -> bool:
        with self.signal:
            if state.version != version:
                return False
            state.move_to(offset, epoch)
            self.signal.notify_all()
            return True
