"""The cluster itself: its brokers, its controller, what they speak."""

from barnabas.client.admin.base import AdminBase, Call
from barnabas.client.admin.types import ApiVersionsDescription, ClusterDescription
from barnabas.client.errors import KafkaError


class ClusterAdmin(AdminBase):
    def describe_cluster(self, *, timeout: float | None = None) -> ClusterDescription:
        """Brokers, controller and the cluster's id."""

        async def work(call: Call) -> ClusterDescription:
            await self._retry(call, self._cluster.refresh)
            metadata = self._cluster.metadata
            return ClusterDescription(
                metadata.cluster_id or "",
                metadata.nodes.get(metadata.controller_id),
                tuple(metadata.nodes.values()),
            )

        return self._run(timeout, work)

    def api_versions(self, *, timeout: float | None = None) -> dict[int, ApiVersionsDescription]:
        """What each broker speaks, by its id."""

        async def ask(node_id: int) -> ApiVersionsDescription:
            connection = await self._cluster.connection(node_id)
            spoken = connection.api_versions
            return ApiVersionsDescription(
                self._cluster.metadata.nodes[node_id],
                {entry.api_key: (entry.min_version, entry.max_version) for entry in spoken.api_keys},
                {entry.name: (entry.min_version, entry.max_version) for entry in spoken.supported_features},
                dict(connection.finalized_features),
            )

        async def attempt(node_ids: list[int]) -> dict[int, ApiVersionsDescription | KafkaError]:
            return {node_id: await ask(node_id) for node_id in node_ids}

        async def work(call: Call) -> dict[int, ApiVersionsDescription]:
            return await self._settle(call, await self._retry(call, self._node_ids), attempt)

        return self._run(timeout, work)
