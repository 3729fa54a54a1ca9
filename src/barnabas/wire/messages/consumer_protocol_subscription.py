"""ConsumerProtocolSubscription, versions 0-3. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, NEVER, Field, Message

VERSIONS = (0, 3)
FLEXIBLE_FROM = NEVER


class TopicPartition(Message):
    topic: str = ""
    partitions: list[int] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 1, 3),
        Field("partitions", "int32", 1, 3, array=True),
    )


class ConsumerProtocolSubscription(Message):
    topics: list[str] = EMPTY
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = EMPTY
    generation_id: int = -1
    rack_id: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", "string", 0, 3, array=True),
        Field("user_data", "bytes", 0, 3, nullable_from=0),
        Field("owned_partitions", TopicPartition, 1, 3, array=True),
        Field("generation_id", "int32", 2, 3),
        Field("rack_id", "string", 3, 3, nullable_from=3),
    )
