"""UpdateFeatures, key 57, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 57
VERSIONS = (0, 2)
FLEXIBLE_FROM = 0


class FeatureUpdateKey(Message):
    feature: str = ""
    max_version_level: int = 0
    upgrade_type: int = 1
    allow_downgrade: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", 0, 2),
        Field("max_version_level", "int16", 0, 2),
        Field("upgrade_type", "int8", 1, 2),
        Field("allow_downgrade", "bool", 0, 0),
    )


class UpdateFeaturesRequest(Message):
    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = EMPTY
    validate_only: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0, 2),
        Field("feature_updates", FeatureUpdateKey, 0, 2, array=True),
        Field("validate_only", "bool", 1, 2),
    )


class UpdatableFeatureResult(Message):
    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("feature", "string", 0, 1),
        Field("error_code", "int16", 0, 1),
        Field("error_message", "string", 0, 1, nullable_from=0),
    )


class UpdateFeaturesResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 0, 2, nullable_from=0),
        Field("results", UpdatableFeatureResult, 0, 1, array=True),
    )


REQUEST = UpdateFeaturesRequest
RESPONSE = UpdateFeaturesResponse
