"""The parts of a consumer, put together: I/O thread, cluster, fetcher, positions, commits, membership."""

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig
from barnabas.client.consumer.access import Access
from barnabas.client.consumer.classic import ClassicMembership
from barnabas.client.consumer.commits import REBALANCING, Commits, Offsets
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.lookups import Identity, with_retries
from barnabas.client.consumer.membership import Membership, MembershipContext
from barnabas.client.consumer.modern import ConsumerMembership
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.positions import Positions
from barnabas.client.consumer.state import Assignments
from barnabas.client.consumer.steps import BlockingSteps, Steps
from barnabas.client.errors import CommitFailedError, KafkaError, KafkaTimeoutError, RebalanceInProgressError
from barnabas.client.runtime import IoThread
from barnabas.client.types import OffsetAndMetadata, TopicPartition

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
CLOSE_SECONDS_MAX = 5.0


class Engine:
    """Used by the user's thread. `ask` runs a request on the I/O thread and waits for the answer."""

    def __init__(self, config: ClientConfig, access: Access) -> None:
        self.config = config
        self.access = access
        self.assignments = Assignments()
        self.io = IoThread("barnabas-consumer").start()
        self.cluster = Cluster(config, allow_auto_create=config["allow.auto.create.topics"])
        self.network = Network(self.cluster, config["group.id"])
        self.positions = Positions(config, self.network, self.assignments, self.identity)
        self.fetcher = Fetcher(config, self.network, self.assignments, self.positions)
        self.commits = Commits(self.network, self._committing_identity)
        self.membership_context = MembershipContext(config, self.io, self.network, self.assignments)
        self.io.explain = self.network.explain
        self.steps = BlockingSteps(self.io, self.wait)
        self.membership: Membership | None = None
        self.assignments.wake = lambda: self.io.call_soon(self.fetcher.wake)
        self.io.call(self._start())
        self._fetching = self.io.run(self.fetcher.run())
        self._fetching.add_done_callback(self._fetching_ended)

    async def _start(self) -> None:
        self.cluster.start()
        self.cluster.listeners.append(lambda _: self._metadata_changed())

    def _fetching_ended(self, fetching: concurrent.futures.Future[None]) -> None:
        error = None if fetching.cancelled() else fetching.exception()
        if isinstance(error, Exception):
            self.assignments.fail(error)

    def _metadata_changed(self) -> None:
        self.fetcher.wake()
        self.notify()

    def notify(self, _: object = None) -> None:
        with self.assignments.signal:
            self.assignments.signal.notify_all()

    def wait(self, is_done: Callable[[], object], deadline: float) -> bool:
        return self.access.wait(self.assignments.signal, is_done, deadline)

    def identity(self) -> Identity:
        return Identity() if self.membership is None else self.membership.identity

    def _committing_identity(self) -> Identity:
        identity = self.identity()
        if self.membership is not None and self.membership.is_rebalancing:
            raise RebalanceInProgressError(REBALANCING)
        if self.membership is not None and not identity.member_id:
            raise CommitFailedError(
                "This consumer cannot commit because it is not a member of its group: it has not joined yet,"
                " or it left because it did not poll within max.poll.interval.ms."
            )
        return identity

    def join_group(self) -> None:
        if self.membership is None:
            modern = self.config["group.protocol"].lower() == "consumer"
            self.membership = (
                ConsumerMembership(self.membership_context)
                if modern
                else ClassicMembership(self.membership_context)
            )
        else:
            self.membership.subscription_changed()

    def leave_group(self, timeout: float) -> Steps[None]:
        """Leave the group, if there is one. The last commit happens while this is still a member."""
        if self.membership is not None:
            try:
                yield from self.membership.leave(timeout)
            finally:
                self.membership = None

    def ask(self, question: Callable[[], Awaitable[_T]], timeout: float) -> _T:
        """Run `question` with retries and return its answer; KafkaTimeoutError after `timeout` seconds."""
        future = self.io.run(with_retries(self.network, question, timeout))
        future.add_done_callback(self.notify)
        try:
            # `with_retries` stops in time by itself; this is for an event loop that hangs.
            if not self.wait(future.done, time.monotonic() + timeout + 1):
                raise KafkaTimeoutError(f"got no answer within {timeout:g} s{self.network.explain()}")
            return future.result()
        finally:
            future.cancel()

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The known positions: a commit without offsets commits these."""
        return {
            each: OffsetAndMetadata(state.offset, "", state.epoch)
            for each, state in self.assignments.states.items()
            if state.offset is not None
        }

    def commit(self, offsets: Offsets, timeout: float) -> None:
        if offsets:
            self.ask(lambda: self.commits.commit(offsets), timeout)

    async def end(self) -> None:
        """Close the connections: the last thing that runs on the I/O thread."""
        self._fetching.cancel()
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await self.cluster.close()
        except TimeoutError:
            _log.warning("the connections of a consumer did not close in time")

    def close(self) -> None:
        try:
            self.io.call(self.end(), CLOSE_SECONDS_MAX + 1)
        except KafkaError as error:
            _log.warning("the connections of a consumer did not close in time: %s", error)
        self.io.stop()
