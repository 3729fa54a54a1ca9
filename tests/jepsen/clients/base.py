"""A client as a process of the workload uses it; each library has a module with these classes.

After an error a client says what is known: `fail` if it definitely did not happen and never will, `unknown`
if it may have happened. When in doubt it is unknown.

- A send that the library accepted and then reported as failed is unknown, whatever the reason: an earlier
  attempt may have been written, and only its answer was lost.
- A transaction fails definitely if an error comes before anybody asked for its commit. After that it is
  unknown.
- A commit of offsets that fails is unknown: an earlier attempt may have landed.
- A poll that raises has read nothing: the libraries promise that the position does not move."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from barnabas.ids import TopicPartition

OK, FAIL, UNKNOWN = "ok", "fail", "unknown"
# What a record carries after its value, so that records are not all tiny.
PADDING = b" " + b"." * 300
VALUE_THAT_NOBODY_SENT = -1
# As Jepsen's: requests are given up soon, so that no client waits for a broker that is paused or cut off, and
# they are repeated for as long as any fault of the tests lasts.
REQUEST_TIMEOUT_MS = 3000
DELIVERY_TIMEOUT_MS = 40_000
BLOCK_MS = 20_000
TRANSACTION_TIMEOUT_MS = 8000
SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 500
POLL_INTERVAL_MS_MAX = 30_000
FETCH_WAIT_MS = 200
POLL_RECORDS_MAX = 200
BACKOFF_MS_MAX = 300

Record = tuple[TopicPartition, int]
# As in a history: ["poll", {key: [[offset, value], ...]}] or ["rebalance", [key, ...]].
MicroOperation = list[Any]


class OperationError(Exception):
    """An operation without a result. `outcome` is fail or unknown. If the client `is_broken`, it must be
    replaced by a new one."""

    def __init__(self, outcome: str, reason: object, *, is_broken: bool = False) -> None:
        super().__init__(f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else reason)
        self.outcome = outcome
        self.is_broken = is_broken


class Sent(NamedTuple):
    """What became of a record. The offset may be unknown also if it was written."""

    outcome: str
    offset: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Group:
    """How a reader is a member of a group: `protocol` is classic or consumer (KIP-848)."""

    id: str
    protocol: str = "classic"
    assignor: str = "range"
    instance_id: str | None = None


class Client(abc.ABC):
    @abc.abstractmethod
    def close(self) -> None:
        """End in good order."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """End without a word to the cluster, as far as the library can: as if the process had died."""


class Writer(Client):
    @abc.abstractmethod
    def send(self, records: Sequence[Record]) -> list[Sent]:
        """Send all without waiting in between, and return when it is known what became of each."""


class TransactionalWriter(Writer):
    """All methods but send raise OperationError. A new one ends what its predecessor with the same
    transactional id has left open."""

    @abc.abstractmethod
    def begin(self) -> None: ...

    @abc.abstractmethod
    def send_offsets(self, reader: Reader, offsets: Mapping[TopicPartition, int]) -> None:
        """Offsets of a reader of the same library, as part of the transaction."""

    @abc.abstractmethod
    def commit(self) -> None: ...

    @abc.abstractmethod
    def abort(self) -> None: ...


class Reader(Client):
    """Reads committed records, from the first one on if its group has not committed an offset. All methods
    raise OperationError."""

    @abc.abstractmethod
    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these from their beginnings."""

    @abc.abstractmethod
    def subscribe(self, topics: Sequence[str]) -> None: ...

    @abc.abstractmethod
    def poll(self, seconds: float) -> list[MicroOperation]:
        """What was read, and in between the rebalances that happened. It ends with a poll."""

    @abc.abstractmethod
    def seek(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    @abc.abstractmethod
    def assignment(self) -> list[TopicPartition]: ...

    @abc.abstractmethod
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...

    @abc.abstractmethod
    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]: ...


class Library(Protocol):
    """Makes clients. They raise OperationError if the cluster does not answer."""

    def writer(self, bootstrap: str, client_id: str, *, in_flight: bool = False) -> Writer:
        """With `in_flight`, each record is a request of its own, several at the same time."""

    def transactional_writer(
        self, bootstrap: str, client_id: str, transactional_id: str
    ) -> TransactionalWriter: ...

    def reader(self, bootstrap: str, client_id: str, group: Group | None = None) -> Reader: ...


def encode(value: int) -> bytes:
    # Sizes differ, but the same value always has the same bytes.
    return b"%d" % value + PADDING[: value % len(PADDING)]


def decode(data: bytes | None) -> int:
    number = (data or b"").split(b" ", 1)[0]
    return int(number) if number.isdigit() else VALUE_THAT_NOBODY_SENT


class Polled:
    """Collects what happens during one poll, in its order."""

    def __init__(self) -> None:
        self._micro: list[MicroOperation] = []

    def add_record(self, partition: TopicPartition, offset: int, data: bytes | None) -> None:
        if not self._micro or self._micro[-1][0] != "poll":
            self._micro.append(["poll", {}])
        self._micro[-1][1].setdefault(str(partition), []).append([offset, decode(data)])

    def add_rebalance(self, partitions: Sequence[Any]) -> None:
        """Partitions, of any library, that were lost or gained."""
        keys = sorted(f"{each.topic}-{each.partition}" for each in partitions)
        if self._micro and self._micro[-1][0] == "rebalance":
            keys = sorted({*keys, *self._micro.pop()[1]})
        self._micro.append(["rebalance", keys])

    def take(self) -> list[MicroOperation]:
        micro, self._micro = self._micro, []
        return micro if micro and micro[-1][0] == "poll" else [*micro, ["poll", {}]]
