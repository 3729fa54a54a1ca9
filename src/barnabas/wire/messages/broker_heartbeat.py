"""BrokerHeartbeat, key 63, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 63
VERSIONS = (0, 2)
FLEXIBLE_FROM = 0


class BrokerHeartbeatRequest(Message):
    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[bytes] = EMPTY
    cordoned_log_dirs: list[bytes] | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0, 2),
        Field("broker_epoch", "int64", 0, 2),
        Field("current_metadata_offset", "int64", 0, 2),
        Field("want_fence", "bool", 0, 2),
        Field("want_shut_down", "bool", 0, 2),
        Field("offline_log_dirs", "uuid", 1, 2, array=True, tag=0),
        Field("cordoned_log_dirs", "uuid", 2, 2, array=True, nullable_from=2, tag=1),
    )


class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("is_caught_up", "bool", 0, 2),
        Field("is_fenced", "bool", 0, 2),
        Field("should_shut_down", "bool", 0, 2),
    )


REQUEST = BrokerHeartbeatRequest
RESPONSE = BrokerHeartbeatResponse
