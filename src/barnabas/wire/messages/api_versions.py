"""ApiVersions, key 18, versions 0-4. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 18
VERSIONS = (0, 4)
FLEXIBLE_FROM = 3


class ApiVersionsRequest(Message):
    client_software_name: str = ""
    client_software_version: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_software_name", "string", 3, 4),
        Field("client_software_version", "string", 3, 4),
    )


class ApiVersion(Message):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("api_key", "int16", 0, 4),
        Field("min_version", "int16", 0, 4),
        Field("max_version", "int16", 0, 4),
    )


class SupportedFeatureKey(Message):
    name: str = ""
    min_version: int = 0
    max_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 3, 4),
        Field("min_version", "int16", 3, 4),
        Field("max_version", "int16", 3, 4),
    )


class FinalizedFeatureKey(Message):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 3, 4),
        Field("max_version_level", "int16", 3, 4),
        Field("min_version_level", "int16", 3, 4),
    )


class ApiVersionsResponse(Message):
    error_code: int = 0
    api_keys: list[ApiVersion] = EMPTY
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = EMPTY
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = EMPTY
    zk_migration_ready: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0, 4),
        Field("api_keys", ApiVersion, 0, 4, array=True),
        Field("throttle_time_ms", "int32", 1, 4),
        Field("supported_features", SupportedFeatureKey, 3, 4, array=True, tag=0),
        Field("finalized_features_epoch", "int64", 3, 4, tag=1),
        Field("finalized_features", FinalizedFeatureKey, 3, 4, array=True, tag=2),
        Field("zk_migration_ready", "bool", 3, 4, tag=3),
    )


REQUEST = ApiVersionsRequest
RESPONSE = ApiVersionsResponse
