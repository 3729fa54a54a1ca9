"""Which member of a consumer group should have which partitions, by the assignor most members prefer.
Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from barnabas.groups import record_schemas as schemas
from barnabas.groups.assignors import ASSIGNORS, NOTHING, Assignment, MemberSpec
from barnabas.groups.consumer.members import Member, target_record
from barnabas.groups.consumer.subscriptions import ResolvedRegex, topics_of
from barnabas.groups.records import GroupRecord
from barnabas.groups.settings import TopicsView
from barnabas.ids import Uuid


def preferred_assignor(members: Iterable[Member], default: str) -> str:
    """The assignor that most members name; in a tie the first one in alphabetical order."""
    votes = Counter(member.assignor for member in members if member.assignor)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else default


def compute_target(
    members: Mapping[str, Member],
    shares: Mapping[str, Assignment],
    regexes: Mapping[str, ResolvedRegex],
    topics: TopicsView,
    assignor: str,
) -> dict[str, Assignment]:
    """The new shares by member id; `shares` are the current ones."""
    counts: dict[Uuid, int] = {}
    specs: dict[str, MemberSpec] = {}
    # Most members subscribe to the same topics: look each set of names up once.
    seen: dict[frozenset[str], frozenset[Uuid]] = {}
    for member_id, member in members.items():
        names = topics_of(member, regexes)
        if names not in seen:
            existing = _counts(names, topics)
            counts.update(existing)
            seen[names] = frozenset(existing)
        specs[member_id] = MemberSpec(seen[names], shares.get(member_id, NOTHING), member.instance_id)
    return ASSIGNORS[assignor](specs, counts)


def target_records(
    group_id: str, old: Mapping[str, Assignment], new: Mapping[str, Assignment], epoch: int, now_ms: int
) -> list[GroupRecord]:
    """Records of the shares that changed, then of the epoch that makes them the target."""
    changed = [
        target_record(group_id, member_id, share)
        for member_id, share in sorted(new.items())
        if share != old.get(member_id)
    ]
    return [*changed, target_epoch_record(group_id, epoch, now_ms)]


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> GroupRecord:
    value = schemas.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=now_ms
    )
    return GroupRecord(schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def _counts(names: Iterable[str], topics: TopicsView) -> dict[Uuid, int]:
    counts: dict[Uuid, int] = {}
    for name in names:
        topic_id, count = topics.topic_id(name), topics.partition_count(name)
        if topic_id is not None and count is not None:
            counts[topic_id] = count
    return counts
