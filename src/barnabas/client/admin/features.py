"""The features of a cluster: which versions brokers support, and which are in use."""

from collections.abc import Mapping

from barnabas.client.admin.base import AdminBase, Call
from barnabas.client.admin.types import FeatureDescription, FeatureUpdate
from barnabas.client.errors import KafkaError, error_from, raise_for
from barnabas.wire.messages import update_features


class FeatureAdmin(AdminBase):
    def describe_features(self, *, timeout: float | None = None) -> dict[str, FeatureDescription]:
        """By name: what one broker supports, and the level that the cluster has agreed on (0: none)."""

        async def ask() -> dict[str, FeatureDescription]:
            connection = await self._cluster.any()
            spoken = connection.api_versions
            levels = dict(connection.finalized_features)
            epoch = spoken.finalized_features_epoch
            return {
                feature.name: FeatureDescription(
                    feature.min_version,
                    feature.max_version,
                    levels.get(feature.name, 0),
                    None if epoch < 0 else epoch,
                )
                for feature in spoken.supported_features
            }

        async def work(call: Call) -> dict[str, FeatureDescription]:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[str, KafkaError | None]:
        """Change the levels, all or none. The outcome of each; older brokers have one for each feature."""

        async def ask(call: Call) -> dict[str, KafkaError | None]:
            connection = await self._cluster.controller()
            request = update_features.UpdateFeaturesRequest(
                timeout_ms=call.left_ms,
                feature_updates=[
                    update_features.FeatureUpdateKey(
                        feature=name, max_version_level=update.level, upgrade_type=int(update.kind)
                    )
                    for name, update in updates.items()
                ],
                validate_only=validate_only,
            )
            response = await connection.send(update_features.API_KEY, request)
            if not response.results:
                failed = error_from(response.error_code, response.error_message)
                return dict.fromkeys(updates, failed if response.error_code else None)
            raise_for(response.error_code, response.error_message)
            return {
                result.feature: error_from(result.error_code, result.error_message)
                if result.error_code
                else None
                for result in response.results
            }

        async def work(call: Call) -> dict[str, KafkaError | None]:
            return await self._retry(call, lambda: ask(call))

        return self._run(timeout, work)
