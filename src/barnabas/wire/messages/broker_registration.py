"""BrokerRegistration, key 62, versions 0-4. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 62
VERSIONS = (0, 4)
FLEXIBLE_FROM = 0


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 4),
        Field("host", "string", 0, 4),
        Field("port", "uint16", 0, 4),
        Field("security_protocol", "int16", 0, 4),
    )


class Feature(Message):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 4),
        Field("min_supported_version", "int16", 0, 4),
        Field("max_supported_version", "int16", 0, 4),
    )


class BrokerRegistrationRequest(Message):
    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: bytes = bytes(16)
    listeners: list[Listener] = EMPTY
    features: list[Feature] = EMPTY
    rack: str | None = ""
    is_migrating_zk_broker: bool = False
    log_dirs: list[bytes] = EMPTY
    previous_broker_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0, 4),
        Field("cluster_id", "string", 0, 4),
        Field("incarnation_id", "uuid", 0, 4),
        Field("listeners", Listener, 0, 4, array=True),
        Field("features", Feature, 0, 4, array=True),
        Field("rack", "string", 0, 4, nullable_from=0),
        Field("is_migrating_zk_broker", "bool", 1, 4),
        Field("log_dirs", "uuid", 2, 4, array=True),
        Field("previous_broker_epoch", "int64", 3, 4),
    )


class BrokerRegistrationResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 4),
        Field("error_code", "int16", 0, 4),
        Field("broker_epoch", "int64", 0, 4),
    )


REQUEST = BrokerRegistrationRequest
RESPONSE = BrokerRegistrationResponse
