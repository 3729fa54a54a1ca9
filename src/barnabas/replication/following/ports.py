"""What followers need from the broker around them. A test or a simulation passes its own."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from barnabas.ids import TopicPartition
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse


class LogBounds(NamedTuple):
    """The log start and end offsets of a leader."""

    start_offset: int
    end_offset: int


class LeaderTransport(Protocol):
    """Sends requests to leaders. If there is no answer, it raises KafkaError or OSError.

    There is no OffsetForLeaderEpoch here: all brokers of a cluster answer a fetch from a diverging log with
    the end of the epoch (Fetch version 12), so a follower need not ask for it first."""

    @property
    def broker_epoch(self) -> int:
        """The epoch under which this broker is registered now."""
        ...

    async def fetch(self, leader_id: int, connection: str, request: FetchRequest) -> FetchResponse:
        """Send it over the connection to the leader with this name; may take as long as the request waits.
        If it is cancelled, the connection can be used again as soon as the answer has come."""
        ...

    async def log_bounds(self, leader_id: int, partition: TopicPartition, leader_epoch: int) -> LogBounds:
        """Where the leader's log begins and ends; KafkaError with the leader's code if it refuses."""
        ...


@dataclass(frozen=True, slots=True)
class FollowingSettings:
    """Settings of the broker: num.replica.fetchers and replica.fetch.*.

    `backoff_seconds_max`: the longest pause after errors (replica.fetch.backoff.ms); the first ones are
    shorter, because most errors after an election end within milliseconds. `interrupt_seconds`: how long a
    new partition waits for the end of a fetch that is under way."""

    broker_id: int
    fetchers_per_leader: int = 1
    wait_ms_max: int = 500
    bytes_min: int = 1
    partition_bytes_max: int = 1_048_576
    response_bytes_max: int = 10_485_760
    backoff_seconds_max: float = 1.0
    interrupt_seconds: float = 0.01
