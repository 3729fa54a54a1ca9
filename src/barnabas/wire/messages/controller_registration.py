"""ControllerRegistration, key 70, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 70
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("host", "string", 0, 0),
        Field("port", "uint16", 0, 0),
        Field("security_protocol", "int16", 0, 0),
    )


class Feature(Message):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("min_supported_version", "int16", 0, 0),
        Field("max_supported_version", "int16", 0, 0),
    )


class ControllerRegistrationRequest(Message):
    controller_id: int = 0
    incarnation_id: bytes = bytes(16)
    zk_migration_ready: bool = False
    listeners: list[Listener] = EMPTY
    features: list[Feature] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("controller_id", "int32", 0, 0),
        Field("incarnation_id", "uuid", 0, 0),
        Field("zk_migration_ready", "bool", 0, 0),
        Field("listeners", Listener, 0, 0, array=True),
        Field("features", Feature, 0, 0, array=True),
    )


class ControllerRegistrationResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("error_message", "string", 0, 0, nullable_from=0),
    )


REQUEST = ControllerRegistrationRequest
RESPONSE = ControllerRegistrationResponse
