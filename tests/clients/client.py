"""The interface of a client for the suite, so that each test runs with every client.

Nothing here knows a client library; the adapters beside this file do."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Message:
    """A record as sent (offset unknown) or as received."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int = 0
    offset: int | None = None
    log_append_time: bool = False

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        """The part that must be read unchanged."""
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True)
class Sending:
    """How a producer is set up."""

    compression: str = "none"
    acks: str = "all"
    idempotent: bool = False
    linger_ms: int = 5
    bytes_max: int = 8_000_000  # above the broker's limit, so that the broker refuses


@dataclass(frozen=True, slots=True)
class Reading:
    """How a consumer is set up. `reset` is earliest, latest or none, for an offset out of range."""

    timeout_s: float = 20.0
    reset: str = "none"
    wait_ms: int = 500
    bytes_max: int = 1_000_000


SENDING = Sending()
READING = Reading()


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str
    controller: int
    nodes: Mapping[int, str]


class BrokerError(Exception):
    """The broker answered with this error code (Kafka's number)."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(f"error {code} {text}")
        self.code = code


class Client(Protocol):
    """Produce and read by assignment; no groups."""

    name: str
    codecs: frozenset[str]
    bootstrap: str

    def produce(
        self, topic: str, messages: Iterable[Message], sending: Sending = SENDING
    ) -> list[int | None]: ...

    def read(
        self, topic: str, count: int, offset: int = 0, partition: int = 0, reading: Reading = READING
    ) -> list[Message]: ...

    def offset_range(self, topic: str, partition: int = 0) -> tuple[int, int]: ...

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None: ...


class Admin(Protocol):
    """Topics, configs and records as the library's admin client does them; raises BrokerError."""

    def create_topic(
        self, topic: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str] | None = None
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...

    def partition_count(self, topic: str) -> int: ...

    def add_partitions(self, topic: str, total: int) -> None: ...

    def topic_config(self, topic: str) -> dict[str, str | None]: ...

    def replace_config(self, topic: str, configs: Mapping[str, str]) -> None: ...

    def delete_records(self, topic: str, before: int) -> int: ...

    def cluster(self) -> ClusterView: ...

    def close(self) -> None: ...


def contents(messages: Sequence[Message]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    return [message.content for message in messages]


def numbered(count: int, prefix: str = "value") -> list[Message]:
    """Messages whose key and value name their place."""
    return [Message(f"{prefix} {number}".encode(), f"key {number}".encode()) for number in range(count)]


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)
