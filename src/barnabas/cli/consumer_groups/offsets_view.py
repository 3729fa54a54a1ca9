"""What --describe shows by default: committed offsets, ends and lag of each partition."""

from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.failures import results_and_errors
from barnabas.cli.output import cell_text, print_table
from barnabas.client.admin.types import ConsumerGroupDescription, MemberDescription, OffsetSpec
from barnabas.client.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from barnabas.client import Admin


class OffsetRow(NamedTuple):
    group: str
    topic: str
    partition: int
    leader_epoch: int | None
    offset: int | None
    end: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None


def offset_rows(admin: "Admin", group: ConsumerGroupDescription, timeout: float) -> list[OffsetRow]:
    """The partitions of members, those of the member with the most first; then the other committed ones."""
    committed = admin.list_consumer_group_offsets(group.group_id, timeout=timeout)
    assigned = {partition for member in group.members for partition in member.assignment}
    # A partition of a deleted topic has no end offset.
    specs = dict.fromkeys(sorted(assigned | set(committed)), OffsetSpec.LATEST)
    listed, _ = results_and_errors(lambda: admin.list_offsets(specs, timeout=timeout))
    ends = {partition: end.offset for partition, end in listed.items()}
    rows: list[OffsetRow] = []
    for member in sorted(group.members, key=lambda member: -len(member.assignment)):
        rows += [
            _offset_row(group.group_id, each, committed.get(each), ends.get(each), member)
            for each in sorted(member.assignment)
        ]
    for each in sorted(set(committed) - assigned):
        rows.append(_offset_row(group.group_id, each, committed[each], ends.get(each), None))
    return rows


def _offset_row(
    group: str,
    partition: TopicPartition,
    committed: OffsetAndMetadata | None,
    end: int | None,
    member: MemberDescription | None,
) -> OffsetRow:
    offset = None if committed is None else committed.offset
    epoch = None if committed is None or committed.leader_epoch < 0 else committed.leader_epoch
    return OffsetRow(
        group,
        partition.topic,
        partition.partition,
        epoch,
        offset,
        end,
        None if offset is None or end is None else end - offset,
        None if member is None else member.member_id,
        None if member is None else member.host,
        None if member is None else member.client_id,
    )


_OFFSET_HEADERS = (
    *("GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
)


def print_offsets(rows: list[OffsetRow], verbose: bool) -> None:
    if not rows:
        return
    minima = [15, 15, 10, 15, 15, 15, 15, 15, 15, 0]
    lines = [_OFFSET_HEADERS, *([cell_text(value) for value in row] for row in rows)]
    if not verbose:
        lines = [[*line[:3], *line[4:]] for line in lines]
        del minima[3]
    print()
    print_table(lines, minima)


def offset_json(row: OffsetRow) -> dict[str, object]:
    return {
        "group": row.group,
        "topic": row.topic,
        "partition": row.partition,
        "leaderEpoch": row.leader_epoch,
        "currentOffset": row.offset,
        "logEndOffset": row.end,
        "lag": row.lag,
        "consumerId": row.consumer_id,
        "host": row.host,
        "clientId": row.client_id,
    }
