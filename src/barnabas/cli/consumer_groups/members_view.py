"""What --describe --members shows: the members of a group and their partitions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.output import MISSING, cell_text, print_table
from barnabas.client.admin.types import ConsumerGroupDescription, MemberDescription
from barnabas.client.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client import Admin


class MemberRow(NamedTuple):
    group: ConsumerGroupDescription
    member: MemberDescription


def member_rows(admin: "Admin", group: ConsumerGroupDescription, timeout: float) -> list[MemberRow]:
    return [MemberRow(group, member) for member in group.members]


_MEMBER_HEADERS = ("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS")
_EPOCH_HEADERS = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")


def print_members(rows: list[MemberRow], verbose: bool) -> None:
    minima = [15, 15, 17, 15, 15, 15]
    headers: list[str] = [*_MEMBER_HEADERS]
    lines = [_member_cells(row) for row in rows]
    if not any(row.member.group_instance_id for row in rows):
        for line in [headers, *lines]:
            del line[2]
        del minima[2]
    if verbose:
        minima += [15, 20, 15, 20]
        headers += _EPOCH_HEADERS
        lines = [[*line, *_epoch_cells(row)] for line, row in zip(lines, rows, strict=True)]
        # While a group moves from the classic protocol to the new one, show which members have moved.
        if {row.member.is_upgraded for row in rows} >= {True, False}:
            minima.append(0)
            headers.append("UPGRADED")
            lines = [
                [*line, MISSING if row.member.is_upgraded is None else str(row.member.is_upgraded).lower()]
                for line, row in zip(lines, rows, strict=True)
            ]
    else:
        minima.append(0)
        headers.append("")
        lines = [[*line, ""] for line in lines]
    print()
    print_table([headers, *lines], minima)


def _member_cells(row: MemberRow) -> list[str]:
    member = row.member
    return [
        row.group.group_id,
        member.member_id,
        member.group_instance_id or "",
        member.host,
        member.client_id,
        str(len(member.assignment)),
    ]


def _epoch_cells(row: MemberRow) -> list[str]:
    member, is_new = row.member, row.member.target_assignment is not None
    return [
        cell_text(member.member_epoch),
        assignment_text(member.assignment),
        cell_text(row.group.target_assignment_epoch if is_new else None),
        assignment_text(member.target_assignment or ()),
    ]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """topic:0,1;other:0"""
    topics: dict[str, list[str]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(str(partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or MISSING


def member_json(row: MemberRow) -> dict[str, object]:
    group, member = row
    return {
        "group": group.group_id,
        "consumerId": member.member_id,
        "groupInstanceId": member.group_instance_id,
        "host": member.host,
        "clientId": member.client_id,
        "assignment": _partitions_json(member.assignment),
        "targetAssignment": None
        if member.target_assignment is None
        else _partitions_json(member.target_assignment),
        "currentEpoch": member.member_epoch,
        "targetEpoch": None if member.target_assignment is None else group.target_assignment_epoch,
        "isUpgraded": member.is_upgraded,
    }


def _partitions_json(partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": partition} for topic, partition in sorted(partitions)]
