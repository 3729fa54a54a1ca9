"""What assignors are asked and answer. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.ids import Uuid

# Partitions by topic id. A topic without partitions is left out, so that equal assignments compare equal.
Assignment: TypeAlias = Mapping[Uuid, frozenset[int]]
NOTHING: Assignment = {}


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """What an assignor may know of a member."""

    topic_ids: frozenset[Uuid]
    # The member's share in the target so far: a sticky assignor keeps as much of it as balance allows.
    assignment: Assignment = field(default_factory=dict)
    instance_id: str | None = None


# Partition counts by topic id, of topics that exist.
PartitionCounts: TypeAlias = Mapping[Uuid, int]
Assignor: TypeAlias = Callable[[Mapping[str, MemberSpec], PartitionCounts], dict[str, Assignment]]


def in_order(members: Mapping[str, MemberSpec]) -> list[str]:
    """Member ids, static members first and by their instance id: it outlives their member ids."""

    def rank(member_id: str) -> tuple[bool, str, str]:
        instance_id = members[member_id].instance_id
        return (instance_id is None, instance_id or "", member_id)

    return sorted(members, key=rank)
