"""The input and output of assignors. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.ids import Uuid

# Partitions by topic id. A topic without partitions is left out, so that equal assignments compare equal.
Assignment: TypeAlias = Mapping[Uuid, frozenset[int]]
NOTHING: Assignment = {}


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """What an assignor knows about a member."""

    topic_ids: frozenset[Uuid]
    # The member's part of the current target. A sticky assignor keeps as much of it as balance allows.
    assignment: Assignment = field(default_factory=dict)
    instance_id: str | None = None


# The number of partitions of each existing topic, by topic id.
PartitionCounts: TypeAlias = Mapping[Uuid, int]
Assignor: TypeAlias = Callable[[Mapping[str, MemberSpec], PartitionCounts], dict[str, Assignment]]


def in_order(members: Mapping[str, MemberSpec]) -> list[str]:
    """Member ids in a stable order: static members first, by their instance id, which does not change."""

    def rank(member_id: str) -> tuple[bool, str, str]:
        instance_id = members[member_id].instance_id
        return (instance_id is None, instance_id or "", member_id)

    return sorted(members, key=rank)
