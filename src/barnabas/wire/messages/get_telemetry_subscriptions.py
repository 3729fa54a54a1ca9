"""GetTelemetrySubscriptions, key 71, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 71
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: bytes = bytes(16)

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("client_instance_id", "uuid", 0, 0),)


class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: bytes = bytes(16)
    subscription_id: int = 0
    accepted_compression_types: list[int] = EMPTY
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("client_instance_id", "uuid", 0, 0),
        Field("subscription_id", "int32", 0, 0),
        Field("accepted_compression_types", "int8", 0, 0, array=True),
        Field("push_interval_ms", "int32", 0, 0),
        Field("telemetry_max_bytes", "int32", 0, 0),
        Field("delta_temporality", "bool", 0, 0),
        Field("requested_metrics", "string", 0, 0, array=True),
    )


REQUEST = GetTelemetrySubscriptionsRequest
RESPONSE = GetTelemetrySubscriptionsResponse
