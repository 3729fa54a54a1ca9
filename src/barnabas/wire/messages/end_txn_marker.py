"""EndTxnMarker, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import NEVER, Field, Message

VERSIONS = (0, 0)
FLEXIBLE_FROM = NEVER


class EndTxnMarker(Message):
    coordinator_epoch: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("coordinator_epoch", "int32", 0, 0),)
