"""ConsumerProtocolAssignment, versions 0-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, NEVER, Field, Message

VERSIONS = (0, 3)
FLEXIBLE_FROM = NEVER


class TopicPartition(Message):
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0, 3),
        Field("partitions", "int32", 0, 3, array=True),
    )


class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition] = EMPTY
    user_data: bytes | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("assigned_partitions", TopicPartition, 0, 3, array=True),
        Field("user_data", "bytes", 0, 3, nullable_from=0),
    )
