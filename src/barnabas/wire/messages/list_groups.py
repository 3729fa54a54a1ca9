"""ListGroups, key 16, versions 0-5. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 16
VERSIONS = (0, 5)
FLEXIBLE_FROM = 3


class ListGroupsRequest(Message):
    states_filter: list[str] = EMPTY
    types_filter: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("states_filter", "string", 4, 5, array=True),
        Field("types_filter", "string", 5, 5, array=True),
    )


class ListedGroup(Message):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 5),
        Field("protocol_type", "string", 0, 5),
        Field("group_state", "string", 4, 5),
        Field("group_type", "string", 5, 5),
    )


class ListGroupsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1, 5),
        Field("error_code", "int16", 0, 5),
        Field("groups", ListedGroup, 0, 5, array=True),
    )


REQUEST = ListGroupsRequest
RESPONSE = ListGroupsResponse
