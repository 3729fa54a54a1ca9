"""What followers need from the broker around them. A test or a simulation passes its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.ids import TopicPartition
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse


class LogBounds(NamedTuple):
    """The log start and end offsets of a leader."""

    start_offset: int
    end_offset: int


# Takes the frame of an answer, without its size, or the error that came instead.
WhenAnswered: TypeAlias = Callable[[bytes | bytearray | Exception], None]


class PlainChannel(Protocol):
    """A connection to a leader over which frames go that a fetcher writes and reads by itself."""

    fetch_version: int
    client_id: bytes
    # How long an answer may take.
    timeout_seconds: float

    def exchange(self, write: Callable[[int], bytes | bytearray], when_answered: WhenAnswered) -> None:
        """Send the frame that `write` returns for a correlation id. Raises DisconnectedError if the
        connection is closed. `when_answered` is called once, as soon as the answer or an error is there."""
        ...

    def close(self, reason: str) -> None: ...


class LeaderTransport(Protocol):
    """Sends requests to leaders. If there is no answer, it raises KafkaError or OSError.

    There is no OffsetForLeaderEpoch here: all brokers of a cluster answer a fetch from a diverging log with
    the end of the epoch (Fetch version 12), so a follower need not ask for it first."""

    @property
    def broker_epoch(self) -> int:
        """The epoch under which this broker is registered now."""
        ...

    async def fetch(self, leader_id: int, connection: str, request: FetchRequest) -> FetchResponse:
        """Send it over the connection to the leader with this name; may take as long as the request waits."""
        ...

    def plain_channel(self, leader_id: int, connection: str) -> PlainChannel | None:
        """The connection with this name, if it is open and both sides can exchange plain frames."""
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
