"""Requests of a consumer to the leaders and to the group's coordinator. Only for the I/O thread.

Fetches have a connection of their own: they wait at the broker, and no other request should wait for them."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.cluster import GROUP, Cluster
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.metadata import Leader
from barnabas.client.troubles import PATIENCE_SECONDS
from barnabas.client.types import Node, TopicPartition
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages import fetch

# The last version of Fetch that identifies topics by name, for brokers without topic ids.
FETCH_BY_NAME = 12
_COORDINATOR_LOST = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)


class Network:
    def __init__(self, cluster: Cluster, group_id: str | None) -> None:
        self.cluster = cluster
        self.group_id = group_id or ""

    def explain(self) -> str:
        return self.cluster.troubles.explain()

    # ---- metadata

    def track(self, topics: Iterable[str]) -> None:
        """Keep these topics in the metadata, whether they exist yet or not."""
        self.cluster.track(topics)

    def request_update(self) -> None:
        self.cluster.request_update()

    def cached_leader(self, partition: TopicPartition) -> int | None:
        leader = self.cluster.metadata.leader_of(partition)
        return None if leader is None else leader.node_id

    def has_node(self, node_id: int) -> bool:
        return node_id in self.cluster.metadata.nodes

    def learn_leaders(self, leaders: Mapping[TopicPartition, Leader], nodes: Iterable[Node]) -> None:
        self.cluster.learn_leaders(leaders, nodes)

    def leader_epoch(self, partition: TopicPartition) -> int:
        leader = self.cluster.metadata.leader_of(partition)
        return -1 if leader is None else leader.epoch

    def leader(self, partition: TopicPartition) -> int:
        node_id = self.cached_leader(partition)
        if node_id is None:
            self.raise_refusal()
            self.track((partition.topic,))
            self.request_update()
            raise self.cluster.metadata.missing(partition)
        return node_id

    def report(self, partitions: Iterable[TopicPartition]) -> None:
        """Log the partitions that do not exist although their topic does. (The cluster logs the others.)"""
        metadata, troubles = self.cluster.metadata, self.cluster.troubles
        for each in partitions:
            if metadata.leader_of(each) is not None:
                troubles.ended(f"partition {each}")
            elif metadata.partition_count(each.topic):
                troubles.failed(f"partition {each}", metadata.missing(each).message, PATIENCE_SECONDS)

    def raise_refusal(self) -> None:
        """If there is no metadata because the brokers and we do not accept each other, waiting does not
        help."""
        if self.cluster.refusal is not None:
            raise self.cluster.refusal

    def topic_id(self, topic: str) -> Uuid:
        known = self.cluster.metadata.topics.get(topic)
        return ZERO_UUID if known is None else known.id

    def topic_name(self, topic_id: Uuid) -> str:
        return self.cluster.metadata.names.get(topic_id, "")

    async def recover(self) -> None:
        """Before a retry: request new metadata, and pause."""
        self.request_update()
        await asyncio.sleep(self.cluster.backoff.seconds(1))

    # ---- requests

    async def ask(self, node: int, api_key: int, request: Message, *, within: float | None = None) -> Any:
        connection = await self.cluster.connection(node, "fetch" if api_key == fetch.API_KEY else "")
        version_max = None
        if isinstance(request, fetch.FetchRequest) and any(
            topic.topic_id == ZERO_UUID for topic in request.topics
        ):
            version_max = FETCH_BY_NAME
        return await connection.send(api_key, request, version_max=version_max, within=within)

    async def ask_coordinator(
        self, api_key: int, request: Message, *, version_max: int | None = None, within: float | None = None
    ) -> Any:
        return await self._ask_coordinator("coordinator", api_key, request, version_max, within)

    async def ask_coordinator_separately(self, api_key: int, request: Message) -> Any:
        """Send on a connection of its own: a JoinGroup may be waiting on the usual one and block the
        others."""
        return await self._ask_coordinator("separate", api_key, request)

    async def _ask_coordinator(
        self,
        purpose: str,
        api_key: int,
        request: Message,
        version_max: int | None = None,
        within: float | None = None,
    ) -> Any:
        try:
            connection = await self.cluster.coordinator(GROUP, self.group_id, purpose)
            return await connection.send(api_key, request, version_max=version_max, within=within)
        except KafkaError as error:
            self.coordinator_failed(error.code)
            raise

    def coordinator_failed(self, code: ErrorCode) -> None:
        """Forget the coordinator if the error says that it is gone or has changed; the next call looks it
        up."""
        if code in _COORDINATOR_LOST:
            self.cluster.forget_coordinator(GROUP, self.group_id)
