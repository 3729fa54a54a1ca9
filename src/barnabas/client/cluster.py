"""The cluster as a client sees it: finds brokers, keeps metadata fresh, knows leaders and coordinators.

Starts from bootstrap.servers. Metadata covers the topics somebody asked for (`want`), or all; it is fetched
again when it is old, when `request_update` says it is wrong, and when a wanted topic is missing. Methods wait
as long as there is hope: a caller bounds them with its own timeout. `metadata` may be read by any thread;
everything else belongs to the event loop."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from barnabas.client.backoff import Backoff
from barnabas.client.config import ClientConfig
from barnabas.client.connection import BrokerConnection
from barnabas.client.connections import Address, Connections
from barnabas.client.errors import ClosedError, DisconnectedError, KafkaError, error_from, raise_for
from barnabas.client.metadata import ClusterMetadata, Leader, TopicMetadata
from barnabas.client.types import Node, TopicPartition
from barnabas.errors import ErrorCode
from barnabas.ids import Uuid
from barnabas.wire.messages import find_coordinator, metadata

__all__ = ["GROUP", "TRANSACTION", "Cluster", "ClusterMetadata", "Leader", "TopicMetadata"]

# Kinds of coordinators, as FindCoordinator numbers them.
GROUP, TRANSACTION = 0, 1

Listener = Callable[[ClusterMetadata], object]


class Cluster:
    """Call `start()` in the loop before anything else and `await close()` at the end."""

    def __init__(self, config: ClientConfig, *, allow_auto_create: bool = False) -> None:
        self.config = config
        self.metadata = ClusterMetadata()
        self.listeners: list[Listener] = []
        self.backoff = Backoff(config.seconds("retry.backoff.ms"), config.seconds("retry.backoff.max.ms"))
        self._allow_auto_create = allow_auto_create
        self._connections = Connections(config)
        self._wanted: set[str] = set()
        self._wants_all = False
        self._coordinators: dict[tuple[int, str], Node] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stale = asyncio.Event()
        self._is_closed = False

    def start(self) -> None:
        """Begin to keep metadata fresh; nothing is sent before somebody wants something."""
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
            raise DisconnectedError(f"the cluster lists no broker {node_id}")
        return await self._connections.open(Address(node.host, node.port, purpose))

    def existing_connection(self, node_id: int, purpose: str = "") -> BrokerConnection | None:
        """The open connection to a broker, without waiting for one."""
        node = self.metadata.nodes.get(node_id)
        return None if node is None else self._connections.existing(Address(node.host, node.port, purpose))

    async def any(self) -> BrokerConnection:
        """A connection to some broker: an open one with little to do, else the first that can be reached."""
        known = [Address(node.host, node.port) for node in self.metadata.nodes.values()]
        is_open = [found for found in map(self._connections.existing, known) if found is not None]
        if is_open:
            return min(is_open, key=lambda connection: connection.pending)
        random.shuffle(known)
        known.sort(key=self._connections.pause_left)
        servers = [Address(host, port) for host, port in self.config.servers]
        if not known or self.config["metadata.recovery.strategy"].lower() == "rebootstrap":
            known += [server for server in servers if server not in known]
        failure: KafkaError | None = None
        for address in known:
            try:
                return await self._connections.open(address)
            except KafkaError as error:
                failure = error
        raise failure or DisconnectedError("there is no broker to ask")

    async def controller(self) -> BrokerConnection:
        """The controller, or whoever the cluster names to forward to it."""
        if not self.metadata.nodes:
            await self.refresh()
        if self.metadata.controller_id not in self.metadata.nodes:
            return await self.any()
        return await self.connection(self.metadata.controller_id)

    # ---- coordinators

    async def coordinator(self, kind: int, key: str, purpose: str = "coordinator") -> BrokerConnection:
        """The coordinator of a group (GROUP) or transactional id (TRANSACTION); raises KafkaError, retriable
        while there is none. Call `forget_coordinator` when it says it is not."""
        node = self._coordinators.get((kind, key))
        if node is None:
            node = await self._find_coordinator(kind, key)
            self._coordinators[kind, key] = node
        try:
            return await self._connections.open(Address(node.host, node.port, purpose))
        except DisconnectedError:
            self.forget_coordinator(kind, key)
            raise

    def coordinator_node(self, kind: int, key: str) -> Node | None:
        """The coordinator as far as known."""
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
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"no broker coordinates {key!r}")
        found = response.coordinators[0]
        raise_for(found.error_code, found.error_message)
        return Node(found.node_id, found.host, found.port)

    # ---- topics and leaders

    def want(self, topics: Iterable[str]) -> None:
        """Keep these topics in the metadata, beside those wanted already."""
        missing = set(topics) - self._wanted
        if missing:
            self._wanted |= missing
            self.request_update()

    async def want_by_id(self, ids: Iterable[Uuid]) -> None:
        """Keep the topics with these ids in the metadata; those that nobody knows are left out."""
        topics = [metadata.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
        answer = await self._ask_metadata(topics)
        self.want(topic.name for topic in answer.topics if topic.name and not topic.error_code)
        await self.refresh()

    def want_only(self, topics: Iterable[str]) -> None:
        """Keep these topics in the metadata and forget the others."""
        topics = set(topics)
        if topics != self._wanted or self._wants_all:
            self._wanted, self._wants_all = topics, False
            self.request_update()

    def want_all(self) -> None:
        """Keep every topic in the metadata: for patterns."""
        self._wants_all = True
        self.request_update()

    async def topic(self, name: str, partitions_min: int = 1) -> TopicMetadata:
        """What is known of a topic, asked for and waited for if need be; an error that time does not heal
        is raised, a missing topic is waited for, and so are partitions up to that number."""
        self._wanted.add(name)
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
        """Who leads a partition; waits while nobody does."""
        failures = 0
        while True:
            topic = await self.topic(partition.topic)
            found = self.metadata.leader_of(partition)
            if found is not None:
                return found
            if failures and topic.partition(partition.partition) is None:
                text = f"topic {partition.topic!r} has no partition {partition.partition}"
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            await asyncio.sleep(self.backoff.seconds(failures))
            await self._refresh_with_patience()
            failures += 1

    # ---- refreshing

    def request_update(self) -> None:
        """Metadata has proved wrong, or more of it is wanted: fetch it soon. Does not wait."""
        self._stale.set()

    async def refresh(self) -> None:
        """Fetch metadata now, together with whoever else asks for it; raises KafkaError when that fails."""
        if self._is_closed:
            raise ClosedError("the client is closed")
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
            self._refreshing.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._refreshing)

    async def fetch_metadata(self, topics: Iterable[str] | None) -> metadata.MetadataResponse:
        """Ask some broker for these topics (None: all) and take the answer in."""
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
            connection.close("the broker sends this client back to its bootstrap servers")
            self.metadata = replace(self.metadata, nodes={})
            raise DisconnectedError("the client must start over from bootstrap.servers")
        raise_for(response.error_code)
        if not response.brokers:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the answer lists no broker")
        return response

    async def _refresh(self) -> None:
        self._stale.clear()
        wants_all, wanted = self._wants_all, set(self._wanted)
        response = await self.fetch_metadata(None if wants_all else wanted)
        self.metadata = self.metadata.updated(response, keep_others=False)
        if not wanted.issuperset(self._wanted) or self._lacks_something():
            # Somebody came while the answer was on its way, or what is wanted has yet to come.
            self.request_update()
        for listener in list(self.listeners):
            listener(self.metadata)

    async def _refresh_with_patience(self) -> None:
        """Refresh; a failure that may pass is left to the next attempt, which the caller makes."""
        try:
            await self.refresh()
        except KafkaError as error:
            if not error.retriable and error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            await asyncio.sleep(self.backoff.seconds(1))

    async def _keep_fresh(self) -> None:
        """Refresh when asked to or when the metadata is old, with pauses that grow while it fails."""
        age_max = self.config.seconds("metadata.max.age.ms")
        failures = 0
        while True:
            if not failures:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(age_max):
                        await self._stale.wait()
            if not (self._wants_all or self._wanted or self._stale.is_set()):
                failures = 0
                continue
            try:
                await self.refresh()
                failures = failures + 1 if self._lacks_something() else 0
            except KafkaError:
                # Whoever needs the metadata asks himself and gets the error; here it is only kept fresh.
                failures += 1
            await asyncio.sleep(self.backoff.seconds(failures + 1))

    def _lacks_something(self) -> bool:
        """Whether a wanted topic, or the leader of a partition of it, is missing and may come."""
        for name in self._wanted:
            known = self.metadata.topics.get(name)
            if (
                known is None
                or known.error.retriable
                or any(info.leader is None for info in known.partitions)
            ):
                return True
        return False
