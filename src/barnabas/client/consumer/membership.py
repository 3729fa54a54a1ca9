"""What both group protocols have in common: revoking and assigning partitions, on the polling thread.

A membership sends its requests to the coordinator on the I/O thread. The polling thread (in the asyncio form:
the polling task) calls the user's listener and changes the assignment."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from barnabas.client.config import ClientConfig
from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.state import Assignments
from barnabas.client.consumer.steps import CallListener, Steps
from barnabas.client.runtime import IoThread
from barnabas.client.types import TopicPartition


class RebalanceListener:
    """Subclass it and override the methods you need. poll() and close() call them."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These partitions are new. They are not read before this returns, so it may seek."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These partitions go to another member. Their offsets can still be committed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Another member has these partitions already. Their offsets can no longer be committed."""
        self.on_partitions_revoked(partitions)


def no_steps() -> Steps[None]:
    yield from ()


class MembershipContext:
    """The parts of the consumer that a membership uses."""

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
        self.before_revocation: Callable[[], Steps[None]] = no_steps
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
    """Changes the assignment and calls the listener, in the right order."""

    def __init__(self, context: MembershipContext) -> None:
        self._context = context

    @property
    def owned(self) -> list[TopicPartition]:
        # Under the lock: taking records moves a partition to the end, and it is missing for a moment.
        with self._context.assignments.signal:
            return sorted(self._context.assignments.states)

    def revoke(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Revoke these partitions: commit while that is still possible, call the listener, stop reading."""
        gone = sorted(set(partitions) & set(self.owned))
        if gone:
            yield from self._context.before_revocation()
            try:
                yield CallListener(self._context.listener().on_partitions_revoked, gone)
            finally:
                self._keep_without(gone)

    def lose(self) -> Steps[None]:
        gone = self.owned
        if gone:
            self._keep_without(gone)
            yield CallListener(self._context.listener().on_partitions_lost, gone)

    def assign(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Read exactly these partitions, after the listener was called with the new ones."""
        partitions = sorted(partitions)
        added = [each for each in partitions if each not in self._context.assignments.states]
        assignments = self._context.assignments
        # The listener may seek, so no fetch starts before it has returned.
        wake, assignments.wake = assignments.wake, bool
        try:
            assignments.replace(partitions)
            yield CallListener(self._context.listener().on_partitions_assigned, added)
        finally:
            assignments.wake = wake
            wake()

    def _keep_without(self, gone: list[TopicPartition]) -> None:
        states = self._context.assignments.states
        self._context.assignments.replace([each for each in states if each not in set(gone)])
