"""The range assignor: each topic is cut into consecutive ranges, one per subscriber, in the members' order.

Topics with the same subscribers and the same number of partitions are cut in the same way. So a member gets
the same partition numbers of each topic, which joins of these topics need. The first members get the longer
ranges."""

from collections.abc import Mapping

from barnabas.groups.assignors.spec import Assignment, MemberSpec, PartitionCounts, in_order
from barnabas.ids import Uuid


def assign_ranges(members: Mapping[str, MemberSpec], counts: PartitionCounts) -> dict[str, Assignment]:
    shares: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in members}
    ordered = in_order(members)
    for topic, count in counts.items():
        subscribers = [member_id for member_id in ordered if topic in members[member_id].topic_ids]
        if not subscribers:
            continue
        quota, longer = divmod(count, len(subscribers))
        start = 0
        for position, member_id in enumerate(subscribers):
            end = start + quota + (position < longer)
            if end > start:
                shares[member_id][topic] = frozenset(range(start, end))
            start = end
    return dict(shares)
