"""What groups know of the cluster's topics: a narrow look at the metadata, so that they need no image."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from barnabas.ids import Uuid


class TopicInfo(NamedTuple):
    name: str
    id: Uuid
    partition_count: int
    # The racks of each partition's replicas; empty where brokers have no rack.
    racks: tuple[frozenset[str], ...] = ()


class TopicsView(Protocol):
    """Always the newest state: a machine asks again each time instead of keeping an answer."""

    def topic(self, name: str) -> TopicInfo | None: ...

    def topic_by_id(self, topic_id: Uuid) -> TopicInfo | None: ...

    def names(self) -> Iterable[str]: ...
