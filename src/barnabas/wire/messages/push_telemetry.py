"""PushTelemetry, key 72, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import Field, Message

API_KEY = 72
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class PushTelemetryRequest(Message):
    client_instance_id: bytes = bytes(16)
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("client_instance_id", "uuid", 0, 0),
        Field("subscription_id", "int32", 0, 0),
        Field("terminating", "bool", 0, 0),
        Field("compression_type", "int8", 0, 0),
        Field("metrics", "bytes", 0, 0),
    )


class PushTelemetryResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
    )


REQUEST = PushTelemetryRequest
RESPONSE = PushTelemetryResponse
