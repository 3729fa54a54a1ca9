"""What a consumer is assigned and where it stands in each partition; shared by its two threads.

The user's thread assigns, seeks and takes records; the I/O thread finds positions and puts what it fetched.
Both hold `signal` while they change anything. A change of place raises a partition's version, so that
answers to questions asked before are recognised and dropped."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from barnabas.client.consumer.fetched import Fetched
from barnabas.client.errors import KafkaError
from barnabas.client.types import TopicPartition

# What is to be found out before a partition can be read.
COMMITTED = "committed"
RESET = "reset"

# Answers that wait for the user per partition: enough that the next one is there when one is used up.
BUFFERS_MAX = 3

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class Signal(threading.Condition):
    """A condition that tells others beside the threads that wait for it: event loops."""

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
        "offset",
        "partition",
        "paused",
        "reset_timestamp",
        "retry_at",
        "version",
        "wants",
    )

    def __init__(self, partition: TopicPartition, wants: str | None = COMMITTED) -> None:
        self.partition = partition
        self.offset: int | None = None  # where the user stands
        self.epoch = -1  # of the record before that
        self.fetch_offset = -1  # behind what is in the buffers
        self.leader_epoch = -1  # of the leader against whose log the position was last checked
        self.version = 0
        self.wants = wants
        self.reset_timestamp: int | None = None
        self.paused = False
        self.buffers: deque[Fetched] = deque()
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.retry_at = 0.0

    def place(self, offset: int, epoch: int = -1) -> None:
        """Stand at that offset; what was fetched for another place is dropped."""
        self.offset = self.fetch_offset = offset
        self.epoch = epoch
        self.leader_epoch = -1
        self.wants = None
        self.reset_timestamp = None
        self.version += 1
        self.buffers.clear()

    def ask(self, wants: str, timestamp: int | None = None) -> None:
        """Have the position looked up; `timestamp` None is what auto.offset.reset says."""
        self.offset = None
        self.fetch_offset = -1
        self.wants = wants
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
    """The partitions a consumer reads now. `signal` is notified of everything a poll may wait for."""

    def __init__(self) -> None:
        self.signal = Signal()
        self.states: dict[TopicPartition, PartitionState] = {}
        self.errors: deque[Exception] = deque()
        self.wake: Callable[[], object] = bool

    def replace(self, partitions: Iterable[TopicPartition], wants: str | None = COMMITTED) -> None:
        """Read exactly these; those that stay keep their place."""
        with self.signal:
            kept = self.states
            self.states = {each: kept.get(each) or PartitionState(each, wants) for each in partitions}
        self.wake()

    def fail(self, error: Exception) -> None:
        """Have the next poll raise it; the same complaint is kept once."""
        with self.signal:
            if str(error) not in map(str, self.errors):
                self.errors.append(error)
            self.signal.notify_all()

    def raise_error(self) -> None:
        if self.errors:
            with self.signal:
                raise self.errors.popleft()

    def put(self, state: PartitionState, version: int, fetched: Fetched) -> None:
        """What was fetched for a place that may not be the user's any more."""
        end = fetched.end_offset()
        with self.signal:
            if state.version == version and self.states.get(state.partition) is state:
                state.buffers.append(fetched)
                state.fetch_offset = end
                self.signal.notify_all()

    def unplaced(self, state: PartitionState, version: int, wants: str | None) -> bool:
        """Nothing was found for the place that was asked for; whether somebody still wants to know."""
        with self.signal:
            if state.version != version:
                return False
            state.wants = wants
            return True

    def positioned(self, state: PartitionState, version: int, offset: int, epoch: int) -> bool:
        with self.signal:
            if state.version != version:
                return False
            state.place(offset, epoch)
            self.signal.notify_all()
            return True


def is_retriable(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.retriable
