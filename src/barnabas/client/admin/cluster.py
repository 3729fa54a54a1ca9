"""The cluster itself: its brokers, its controller, the APIs they support."""

from collections.abc import Collection

from barnabas.client.admin.base import AdminBase, Call
from barnabas.client.admin.types import ApiVersionsDescription, ClusterDescription
from barnabas.client.errors import KafkaError, UnsupportedVersionError, raise_for
from barnabas.client.metadata import ClusterMetadata
from barnabas.client.types import Node
from barnabas.wire.messages import describe_cluster, unregister_broker

# The first version of DescribeCluster that includes fenced brokers.
FENCED_FROM = 2


class ClusterAdmin(AdminBase):
    def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Brokers, controller and the cluster's id."""

        async def from_metadata() -> ClusterDescription:
            await self._cluster.refresh()
            metadata = self._cluster.metadata
            return ClusterDescription(
                metadata.cluster_id or "",
                metadata.nodes.get(metadata.controller_id),
                tuple(metadata.nodes.values()),
            )

        async def with_fenced() -> ClusterDescription:
            connection = await self._cluster.any()
            if not connection.supports(describe_cluster.API_KEY, FENCED_FROM):
                raise UnsupportedVersionError("the broker is too old to list fenced brokers")
            request = describe_cluster.DescribeClusterRequest(include_fenced_brokers=True)
            response = await connection.send(describe_cluster.API_KEY, request)
            raise_for(response.error_code, response.error_message)
            return _described(response)

        async def work(call: Call) -> ClusterDescription:
            return await self._retry(call, with_fenced if include_fenced_brokers else from_metadata)

        return self._run(timeout, work)

    def fetch_metadata(
        self, topics: Collection[str] | None = None, *, timeout: float | None = None
    ) -> ClusterMetadata:
        """Brokers, topics and partitions as one broker knows them, in one answer; None means all topics."""

        async def work(call: Call) -> ClusterMetadata:
            return await self._retry(call, lambda: self._topics_metadata(topics))

        return self._run(timeout, work)

    def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Remove a broker that will not come back. UnsupportedVersionError if the cluster cannot do that."""

        async def ask() -> None:
            connection = await self._cluster.controller()
            request = unregister_broker.UnregisterBrokerRequest(broker_id=broker_id)
            response = await connection.send(unregister_broker.API_KEY, request)
            raise_for(response.error_code, response.error_message)

        async def work(call: Call) -> None:
            await self._retry(call, ask)

        self._run(timeout, work)

    def api_versions(self, *, timeout: float | None = None) -> dict[int, ApiVersionsDescription]:
        """The APIs and features that each broker supports, by broker id."""

        async def ask(node_id: int) -> ApiVersionsDescription:
            connection = await self._cluster.connection(node_id)
            spoken = connection.api_versions
            return ApiVersionsDescription(
                self._cluster.metadata.nodes[node_id],
                {entry.api_key: (entry.min_version, entry.max_version) for entry in spoken.api_keys},
                {entry.name: (entry.min_version, entry.max_version) for entry in spoken.supported_features},
                dict(connection.finalized_features),
            )

        async def outcome(node_id: int) -> ApiVersionsDescription | KafkaError:
            try:
                return await ask(node_id)
            except KafkaError as error:
                return error

        async def attempt(node_ids: list[int]) -> dict[int, ApiVersionsDescription | KafkaError]:
            return {node_id: await outcome(node_id) for node_id in node_ids}

        async def work(call: Call) -> dict[int, ApiVersionsDescription]:
            return await self._retry_items(call, await self._retry(call, self._node_ids), attempt)

        return self._run(timeout, work)


def _described(response: describe_cluster.DescribeClusterResponse) -> ClusterDescription:
    nodes = {
        broker.broker_id: Node(broker.broker_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    return ClusterDescription(
        response.cluster_id,
        nodes.get(response.controller_id),
        tuple(nodes.values()),
        frozenset(broker.broker_id for broker in response.brokers if broker.is_fenced),
    )
