"""The cluster as the parts of a consumer use it: ask a leader, ask the group's coordinator. I/O thread only.

Fetches have a connection of their own: they wait at the broker, and nothing else should wait behind them."""

import asyncio
from collections.abc import Iterable
from typing import Any

from barnabas.client.cluster import GROUP, Cluster
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages import fetch

# The last version of Fetch that names topics, for brokers without topic ids.
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

    # ---- metadata

    def know(self, topics: Iterable[str]) -> None:
        """Keep these topics in the metadata; those that are missing will come, or not."""
        self.cluster.want(topics)

    def stale(self) -> None:
        self.cluster.request_update()

    def cached_leader(self, partition: TopicPartition) -> int | None:
        found = self.cluster.metadata.leader_of(partition)
        return None if found is None else found.node_id

    def leader_epoch(self, partition: TopicPartition) -> int:
        found = self.cluster.metadata.leader_of(partition)
        return -1 if found is None else found.epoch

    def leader(self, partition: TopicPartition) -> int:
        found = self.cached_leader(partition)
        if found is None:
            self.know((partition.topic,))
            self.stale()
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader that is known")
        return found

    def topic_id(self, topic: str) -> Uuid:
        known = self.cluster.metadata.topics.get(topic)
        return ZERO_UUID if known is None else known.id

    def topic_name(self, topic_id: Uuid) -> str:
        return self.cluster.metadata.names.get(topic_id, "")

    async def recover(self) -> None:
        """Before trying again: a pause, and metadata that is newer than the failure."""
        self.stale()
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

    async def tell_coordinator_aside(self, api_key: int, request: Message) -> Any:
        """On a connection of its own: a JoinGroup may be waiting on the usual one, and all behind it."""
        return await self._ask_coordinator("aside", api_key, request)

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
        """Look the coordinator up again where the error says that it is another one, or gone."""
        if code in _COORDINATOR_LOST:
            self.cluster.forget_coordinator(GROUP, self.group_id)
