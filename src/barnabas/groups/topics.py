"""What groups know of the cluster's topics: a narrow look at the metadata, so that they need no image."""

from collections.abc import Iterable
from typing import Protocol

from barnabas.ids import Uuid


class TopicsView(Protocol):
    """Always the newest state: a machine asks again each time instead of keeping an answer."""

    def partition_count(self, topic: str) -> int | None: ...

    def topic_id(self, topic: str) -> Uuid | None: ...

    def topic_name(self, topic_id: Uuid) -> str | None: ...

    def names(self) -> Iterable[str]: ...
