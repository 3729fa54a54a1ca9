"""What changed between two images, for a broker to react to. Pure values: no I/O.

A topic that was deleted and created again with the same name is in both `topics_deleted` (the old id) and
`topics_created` (the new id). Handle the deleted ones first."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.metadata.parts import ConfigResource, PartitionImage, TopicImage

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


@dataclass(frozen=True, slots=True)
class PartitionDifference:
    """A partition that is new (`old` is None) or has new values. Its topic is in both images."""

    topic: TopicImage
    index: int
    old: PartitionImage | None
    new: PartitionImage


@dataclass(frozen=True, slots=True)
class Difference:
    topics_deleted: tuple[TopicImage, ...] = ()
    topics_created: tuple[TopicImage, ...] = ()
    partitions_changed: tuple[PartitionDifference, ...] = ()
    configs_changed: tuple[ConfigResource, ...] = ()
    brokers_changed: tuple[int, ...] = ()
    controller_changed: bool = False
    acls_changed: bool = False
    client_quotas_changed: bool = False

    @property
    def empty(self) -> bool:
        return self == _NOTHING


_NOTHING = Difference()


def compare(old: "MetadataImage", new: "MetadataImage") -> Difference:
    """The difference of any two images. A part that both share is not compared."""
    return compare_touched(
        old,
        new,
        () if old.topics is new.topics else old.topics.keys() | new.topics.keys(),
        () if old.configs is new.configs else old.configs.keys() | new.configs.keys(),
        () if old.brokers is new.brokers else old.brokers.keys() | new.brokers.keys(),
    )


def compare_touched(
    old: "MetadataImage",
    new: "MetadataImage",
    topics: Iterable[str],
    configs: Iterable[ConfigResource],
    brokers: Iterable[int],
) -> Difference:
    """The difference of two images that can differ only in these topics, configs and brokers."""
    deleted: list[TopicImage] = []
    created: list[TopicImage] = []
    changed: list[PartitionDifference] = []
    for name in sorted(topics):
        before, after = old.topics.get(name), new.topics.get(name)
        if before is after:
            continue
        if before is None or after is None or before.id != after.id:
            deleted.extend([before] if before is not None else [])
            created.extend([after] if after is not None else [])
        else:
            changed.extend(_changed_partitions(before, after))
    return Difference(
        tuple(deleted),
        tuple(created),
        tuple(changed),
        tuple(sorted(key for key in configs if old.configs.get(key) != new.configs.get(key))),
        tuple(sorted(key for key in brokers if old.brokers.get(key) != new.brokers.get(key))),
        old.controller_id != new.controller_id,
        old.acls is not new.acls and old.acls != new.acls,
        old.client_quotas is not new.client_quotas and old.client_quotas != new.client_quotas,
    )


def _changed_partitions(before: TopicImage, after: TopicImage) -> Iterable[PartitionDifference]:
    for index, new in enumerate(after.partitions):
        old = before.partitions[index] if index < len(before.partitions) else None
        if old is not new and old != new:
            yield PartitionDifference(after, index, old, new)
