"""DeleteGroups, key 42, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 42
VERSIONS = (0, 2)
FLEXIBLE_FROM = 2


class DeleteGroupsRequest(Message):
    groups_names: list[str] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("groups_names", "string", 0, 2, array=True),)


class DeletableGroupResult(Message):
    group_id: str = ""
    error_code: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0, 2),
        Field("error_code", "int16", 0, 2),
    )


class DeleteGroupsResponse(Message):
    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("results", DeletableGroupResult, 0, 2, array=True),
    )


REQUEST = DeleteGroupsRequest
RESPONSE = DeleteGroupsResponse
