"""The cluster as a client sees it: finds brokers, keeps metadata fresh, knows leaders and coordinators.

It starts from bootstrap.servers. The metadata covers the tracked topics (`track`), or all. It is fetched
again when it is old, after `request_update`, and while a tracked topic is missing. Methods retry without a
limit: the caller sets a timeout. Any thread may read `metadata`; everything else must be called in the event
loop."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from barnabas.client.config import ClientConfig
from barnabas.client.errors import (
    AuthenticationError,
    ClosedError,
    DisconnectedError,
    KafkaError,
    error_from,
    raise_for,
)
from barnabas.client.metadata import ClusterMetadata, Leader, TopicMetadata
from barnabas.client.troubles import PATIENCE_SECONDS, Troubles, cause_of
from barnabas.client.types import Node, TopicPartition
from barnabas.errors import ErrorCode
from barnabas.ids import Uuid
from barnabas.net.broker_connection import BrokerConnection
from barnabas.net.connections import Address, Backoff, Connections
from barnabas.wire.messages import find_coordinator, metadata

__all__ = ["GROUP", "TRANSACTION", "Cluster", "ClusterMetadata", "Leader", "TopicMetadata"]

# Kinds of coordinators, as numbered in FindCoordinator.
GROUP, TRANSACTION = 0, 1

Listener = Callable[[ClusterMetadata], object]


class Cluster:
    """Call `start()` in the loop before anything else and `await close()` at the end."""

    def __init__(self, config: ClientConfig, *, allow_auto_create: bool = False) -> None:
        self.config = config
        self.metadata = ClusterMetadata()
        self.listeners: list[Listener] = []
        self.troubles = Troubles(config["client.id"])
        self.backoff = Backoff(config.seconds("retry.backoff.ms"), config.seconds("retry.backoff.max.ms"))
        self._allow_auto_create = allow_auto_create
        self._connections = Connections(config.connection_settings)
        self._tracked: set[str] = set()
        self._tracks_all = False
        self._coordinators: dict[tuple[int, str], Node] = {}
        self._avoided: Address | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stale = asyncio.Event()
        self._is_closed = False
        self.refusal: AuthenticationError | None = None
        """Why the last update of the metadata failed, if no broker and we accept each other."""

    def start(self) -> None:
        """Begin to keep metadata fresh. Nothing is sent until a topic is tracked or an update is
        requested."""
        self._keeper = asyncio.get_running_loop().create_task(self._keep_fresh())

    async def close(self) -> None:
        self._is_closed = True
        tasks = [task for task in (self._keeper, self._refreshing) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._connections.close()

    # ---- connections

    async def connection(self, node_id: int, purpose: str = "") -> BrokerConnection:
        """The connection to a broker for a purpose; DisconnectedError when it cannot be reached."""
        node = self.metadata.nodes.get(node_id)
        if node is None:
            await self.refresh()
            node = self.metadata.nodes.get(node_id)
        if node is None:
            raise DisconnectedError(f"the metadata of the cluster has no broker {node_id}")
        return await self._open(Address(node.host, node.port, purpose))

    async def any(self) -> BrokerConnection:
        """A connection to any broker: the least busy one that is open, otherwise the first that can be
        opened."""
        known = [Address(node.host, node.port) for node in self.metadata.nodes.values()]
        existing = [self._connections.existing(address) for address in known if address != self._avoided]
        open_connections = [connection for connection in existing if connection is not None]
        if open_connections:
            return min(open_connections, key=lambda connection: connection.pending)
        random.shuffle(known)
        known.sort(key=lambda address: (address == self._avoided, self._connections.pause_left(address)))
        servers = [Address(host, port) for host, port in self.config.servers]
        if not known or self.config["metadata.recovery.strategy"].lower() == "rebootstrap":
            known += [server for server in servers if server not in known]
        failure: KafkaError | None = None
        for address in known:
            try:
                return await self._open(address)
            except AuthenticationError:
                # The others would say the same, and the caller should know at once.
                raise
            except KafkaError as error:
                failure = error
        raise failure or DisconnectedError("no broker is known")

    async def _open(self, address: Address) -> BrokerConnection:
        subject = f"the broker at {address.host}:{address.port}"
        try:
            connection = await self._connections.open(address)
        except KafkaError as error:
            if error.retriable:
                self.troubles.failed(subject, cause_of(error))
            raise
        self.troubles.ended(subject)
        return connection

    def avoid(self, node_id: int) -> None:
        """Ask this broker about the cluster only if no other can be reached: it may be cut off from the
        others, and then it goes on naming leaders of the past, perhaps itself."""
        node = self.metadata.nodes.get(node_id)
        self._avoided = None if node is None else Address(node.host, node.port)

    async def controller(self) -> BrokerConnection:
        """A connection to the controller, or to the broker that the metadata names as one."""
        if not self.metadata.nodes:
            await self.refresh()
        if self.metadata.controller_id not in self.metadata.nodes:
            return await self.any()
        return await self.connection(self.metadata.controller_id)

    # ---- coordinators

    async def coordinator(self, kind: int, key: str, purpose: str = "coordinator") -> BrokerConnection:
        """A connection to the coordinator of a group (GROUP) or transactional id (TRANSACTION). Raises a
        retriable KafkaError while there is none. Call `forget_coordinator` when it is no longer one."""
        node = self._coordinators.get((kind, key))
        if node is None:
            node = await self._find_coordinator(kind, key)
            self._coordinators[kind, key] = node
        try:
            return await self._open(Address(node.host, node.port, purpose))
        except DisconnectedError:
            self.forget_coordinator(kind, key)
            raise

    def coordinator_node(self, kind: int, key: str) -> Node | None:
        """The coordinator, if it is known."""
        return self._coordinators.get((kind, key))

    def forget_coordinator(self, kind: int, key: str) -> None:
        self._coordinators.pop((kind, key), None)

    async def _find_coordinator(self, kind: int, key: str) -> Node:
        connection = await self.any()
        request = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        response: find_coordinator.FindCoordinatorResponse = await connection.send(
            find_coordinator.API_KEY, request
        )
        if not response.coordinators:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"there is no coordinator for {key!r}")
        coordinator = response.coordinators[0]
        raise_for(coordinator.error_code, coordinator.error_message)
        return Node(coordinator.node_id, coordinator.host, coordinator.port)

    # ---- topics and leaders

    def track(self, topics: Iterable[str]) -> None:
        """Keep these topics in the metadata, in addition to those already tracked."""
        missing = set(topics) - self._tracked
        if missing:
            self._tracked |= missing
            self.request_update()

    @property
    def tracked(self) -> frozenset[str]:
        return frozenset(self._tracked)

    def forget(self, topics: Iterable[str]) -> None:
        """Do not keep these topics in the metadata any more."""
        for name in topics:
            self._tracked.discard(name)
            self.troubles.forget(f"topic {name!r}")

    async def track_by_id(self, ids: Iterable[Uuid]) -> None:
        """Keep the topics with these ids in the metadata; ids that the broker does not know are left out."""
        topics = [metadata.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
        answer = await self._ask_metadata(topics)
        self.track(topic.name for topic in answer.topics if topic.name and not topic.error_code)
        await self.refresh()

    def track_all(self) -> None:
        """Keep all topics in the metadata, to match patterns."""
        self._tracks_all = True
        self.request_update()

    async def topic(self, name: str, partitions_min: int = 1) -> TopicMetadata:
        """The metadata of a topic. Waits until the topic exists and has `partitions_min` partitions; errors
        that are not retriable are raised."""
        self._tracked.add(name)
        failures = 0
        while True:
            known = self.metadata.topics.get(name)
            has_error = known is not None and known.error is not ErrorCode.NONE
            if known is not None and not has_error and len(known.partitions) >= partitions_min:
                return known
            if failures and known is not None and has_error and not known.error.retriable:
                raise error_from(known.error, f"topic {name!r}: {known.error.text}")
            await asyncio.sleep(self.backoff.seconds(failures))
            await self._refresh_with_patience()
            failures += 1

    async def leader(self, partition: TopicPartition) -> Leader:
        """The leader of a partition; waits until there is one."""
        failures = 0
        while True:
            topic = await self.topic(partition.topic)
            leader = self.metadata.leader_of(partition)
            if leader is not None:
                return leader
            if failures and topic.partition(partition.partition) is None:
                raise self.metadata.missing(partition)
            await asyncio.sleep(self.backoff.seconds(failures))
            await self._refresh_with_patience()
            failures += 1

    def learn_leaders(self, leaders: Mapping[TopicPartition, Leader], nodes: Iterable[Node]) -> None:
        """Leaders that a broker names in the answer to a Produce or Fetch, where it is not the leader."""
        self.metadata = self.metadata.with_leaders(leaders, nodes)
        self._tell_listeners()

    # ---- refreshing

    def request_update(self) -> None:
        """Fetch new metadata soon: it was wrong, or more topics are tracked. Does not wait."""
        self._stale.set()

    async def refresh(self) -> None:
        """Fetch metadata now; concurrent callers share one request. Raises KafkaError if that fails."""
        if self._is_closed:
            raise ClosedError("the client is closed")
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
            self._refreshing.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._refreshing)

    async def fetch_metadata(self, topics: Iterable[str] | None) -> metadata.MetadataResponse:
        """Ask any broker for the metadata of these topics (None: all)."""
        if topics is None:
            return await self._ask_metadata(None)
        return await self._ask_metadata([metadata.MetadataRequestTopic(name=name) for name in sorted(topics)])

    async def _ask_metadata(
        self, topics: list[metadata.MetadataRequestTopic] | None
    ) -> metadata.MetadataResponse:
        connection = await self.any()
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=self._allow_auto_create)
        response: metadata.MetadataResponse = await connection.send(metadata.API_KEY, request)
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            connection.close("the broker asked this client to start again from bootstrap.servers")
            self.metadata = replace(self.metadata, nodes={})
            raise DisconnectedError("the client must start again from bootstrap.servers")
        raise_for(response.error_code)
        if not response.brokers:
            # A broker of a cluster that is just starting: the others are not known yet.
            raise DisconnectedError("the metadata answer has no brokers")
        return response

    async def _refresh(self) -> None:
        self._stale.clear()
        tracks_all, requested = self._tracks_all, set(self._tracked)
        response = await self.fetch_metadata(None if tracks_all else requested)
        self.metadata = self.metadata.updated(response)
        if not requested.issuperset(self._tracked) or self._lacks_something():
            # More topics were tracked during the request, or a tracked topic does not exist yet.
            self.request_update()
        self._report_topics(requested)
        self._tell_listeners()

    def _report_topics(self, requested: Iterable[str]) -> None:
        for name in requested:
            problem = self.metadata.problem_of(name)
            if problem is None:
                self.troubles.ended(f"topic {name!r}")
            else:
                self.troubles.failed(f"topic {name!r}", problem, PATIENCE_SECONDS)

    def _tell_listeners(self) -> None:
        for listener in list(self.listeners):
            listener(self.metadata)

    async def _refresh_with_patience(self) -> None:
        """Refresh. After a retriable error, only pause: the caller tries again."""
        try:
            await self.refresh()
        except KafkaError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(self.backoff.seconds(1))

    async def _keep_fresh(self) -> None:
        """Refresh on request and when the metadata is old, with growing pauses while that fails."""
        age_max = self.config.seconds("metadata.max.age.ms")
        failures = 0
        while True:
            if not failures:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(age_max):
                        await self._stale.wait()
            if not (self._tracks_all or self._tracked or self._stale.is_set()):
                failures = 0
                continue
            try:
                await self.refresh()
                failures = failures + 1 if self._lacks_something() else 0
                self.refusal = None
            except KafkaError as error:
                # Callers that need the metadata call refresh() themselves and get the error.
                failures += 1
                self.refusal = error if isinstance(error, AuthenticationError) else None
                if self.refusal is not None:
                    self._tell_listeners()
            await asyncio.sleep(self.backoff.seconds(failures + 1))

    def _lacks_something(self) -> bool:
        """Whether a tracked topic, or a leader of one of its partitions, is missing but may appear."""
        for name in self._tracked:
            known = self.metadata.topics.get(name)
            if (
                known is None
                or known.error.retriable
                or any(info.leader is None for info in known.partitions)
            ):
                return True
        return False
