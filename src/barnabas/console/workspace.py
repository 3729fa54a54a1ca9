"""The clients of one user of the cluster, and what they have seen of it: one for all visitors, or one per
login."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from barnabas.client.aio.admin import AsyncAdmin
from barnabas.client.aio.producer import AsyncProducer
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.keys import ADMIN_KEYS, PRODUCER_KEYS
from barnabas.console.sampling import Sampler

CLIENT_ID = "barnabas-console"
# How long one request to the cluster may take before the page says that nobody answers.
ANSWER_SECONDS = 10.0
DELIVERY_SECONDS = 15.0
FEATURES_SECONDS = 60.0

_FEATURE_APIS = {"users": 50, "quotas": 48, "transactions": 66}
_DESCRIBE_ACLS = 29
NO_FEATURES = {"acls": False, "users": False, "quotas": False, "transactions": False}


class Workspace:
    def __init__(self, client: Mapping[str, Any], sample_seconds: float) -> None:
        self._client = dict(client)
        self._producer: AsyncProducer | None = None
        self._features: tuple[float, dict[str, bool]] | None = None
        settings = {
            "default.api.timeout.ms": int(ANSWER_SECONDS * 1000),
            "request.timeout.ms": int(ANSWER_SECONDS * 1000),
            **_settings(self._client, ADMIN_KEYS),
        }
        self.admin = AsyncAdmin(settings)
        self.sampler = Sampler(self.admin, sample_seconds)

    async def close(self) -> None:
        await self.sampler.stop()
        await self.admin.close()
        if self._producer is not None:
            await self._producer.close()

    @property
    def producer(self) -> AsyncProducer:
        if self._producer is None:
            settings = {
                "max.block.ms": int(ANSWER_SECONDS * 1000),
                "request.timeout.ms": int(ANSWER_SECONDS * 1000),
                "delivery.timeout.ms": int(DELIVERY_SECONDS * 1000),
                **_settings(self._client, PRODUCER_KEYS),
            }
            self._producer = AsyncProducer(settings)
        return self._producer

    async def features(self) -> dict[str, bool]:
        """Which of the optional parts the cluster has; asked again now and then."""
        now = time.monotonic()
        if self.sampler.problem is not None:
            return NO_FEATURES if self._features is None else self._features[1]
        if self._features is None or now - self._features[0] > FEATURES_SECONDS:
            self._features = now, await self._ask_features()
        return self._features[1]

    async def _ask_features(self) -> dict[str, bool]:
        versions = await self.admin.api_versions()
        supported = set().union(*(each.versions for each in versions.values()))
        features = {name: key in supported for name, key in _FEATURE_APIS.items()}
        features["acls"] = _DESCRIBE_ACLS in supported and await self._has_acls()
        return features

    async def _has_acls(self) -> bool:
        try:
            await self.admin.describe_acls()
        except KafkaError as error:
            # A user without the right to see them should learn that from the page of ACLs.
            return error.code is not ErrorCode.SECURITY_DISABLED
        return True


def _settings(client: Mapping[str, Any], keys: Mapping[str, object]) -> dict[str, Any]:
    return {"client.id": CLIENT_ID, **{key: value for key, value in client.items() if key in keys}}


async def opened(client: Mapping[str, Any], sample_seconds: float) -> Workspace:
    """A workspace whose user and password are right; raises what the brokers say otherwise."""
    workspace = Workspace(client, sample_seconds)
    try:
        await workspace.admin.describe_cluster()
    except BaseException:
        await asyncio.shield(workspace.close())
        raise
    workspace.sampler.start()
    return workspace
