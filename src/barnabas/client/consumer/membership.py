"""What both group protocols have in common: the handing over of partitions, on the polling thread.

A membership talks to the coordinator on the I/O thread and tells the polling thread what it is to do; the
polling thread (or, in the asyncio form, the polling task) calls the user's listener, changes the assignment
and says so."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from barnabas.client.config import ClientConfig
from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.state import Assignments
from barnabas.client.consumer.steps import Steps, Tell
from barnabas.client.runtime import IoThread
from barnabas.client.types import TopicPartition


class RebalanceListener:
    """Derive from it and override what is of interest; all are called by poll() and close()."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These are new; they are not read before this returns, so it may seek."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These go to somebody else; what was read of them can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """These are somebody else's already; nothing can be committed."""
        self.on_partitions_revoked(partitions)


def nothing() -> Steps[None]:
    """No step at all."""
    yield from ()


class Surroundings:
    """What a membership works with."""

    def __init__(
        self, config: ClientConfig, io: IoThread, network: Network, assignments: Assignments
    ) -> None:
        self.config = config
        self.io = io
        self.network = network
        self.assignments = assignments
        self.topics: Callable[[], tuple[str, ...]] = tuple
        self.listener: Callable[[], Any] = RebalanceListener
        self.pattern: Callable[[], str] = str
        self.before_revocation: Callable[[], Steps[None]] = nothing
        self.last_poll = time.monotonic()


class Membership(Protocol):
    @property
    def identity(self) -> Identity: ...
    @property
    def has_work(self) -> bool: ...
    @property
    def is_rebalancing(self) -> bool: ...
    def poll(self, deadline: float) -> Steps[None]: ...
    def subscription_changed(self) -> None: ...
    def leave(self, timeout: float) -> Steps[None]: ...


class Handover:
    """Changes the assignment and tells the listener, in the right order."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    @property
    def owned(self) -> list[TopicPartition]:
        # Taking records moves a partition to the end of the others; in between it is not there.
        with self._around.assignments.signal:
            return sorted(self._around.assignments.states)

    def revoke(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Give these up: commit while that is possible, tell the listener, stop reading."""
        gone = sorted(set(partitions) & set(self.owned))
        if gone:
            yield from self._around.before_revocation()
            try:
                yield Tell(self._around.listener().on_partitions_revoked, gone)
            finally:
                self._keep_without(gone)

    def lose(self) -> Steps[None]:
        gone = self.owned
        if gone:
            self._keep_without(gone)
            yield Tell(self._around.listener().on_partitions_lost, gone)

    def assign(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Read exactly these from now on, once the listener has heard of the new ones."""
        partitions = sorted(partitions)
        added = [each for each in partitions if each not in self._around.assignments.states]
        assignments = self._around.assignments
        # The listener may seek; fetching waits until it has returned.
        wake, assignments.wake = assignments.wake, bool
        try:
            assignments.replace(partitions)
            yield Tell(self._around.listener().on_partitions_assigned, added)
        finally:
            assignments.wake = wake
            wake()

    def _keep_without(self, gone: list[TopicPartition]) -> None:
        states = self._around.assignments.states
        self._around.assignments.replace([each for each in states if each not in set(gone)])
