"""What --describe --state shows: the coordinator, the strategy and the state of a group."""

from typing import TYPE_CHECKING

from barnabas.cli.output import MISSING, cell_text, print_table
from barnabas.client.admin.types import ConsumerGroupDescription

if TYPE_CHECKING:
    from barnabas.client import Admin


def state_rows(
    admin: "Admin", group: ConsumerGroupDescription, timeout: float
) -> list[ConsumerGroupDescription]:
    return [group]


def print_states(groups: list[ConsumerGroupDescription], verbose: bool) -> None:
    headers = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    minima = [15, 25, 20, 20, 0]
    lines = [
        [
            group.group_id,
            f"{group.coordinator.host}:{group.coordinator.port}  ({group.coordinator.id})",
            group.assignor or MISSING,
            group.state,
            str(len(group.members)),
        ]
        for group in groups
    ]
    if verbose:
        headers[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        minima[4:4] = [15, 25]
        for line, group in zip(lines, groups, strict=True):
            line[4:4] = [cell_text(group.group_epoch), cell_text(group.target_assignment_epoch)]
    print()
    print_table([headers, *lines], minima)


def state_json(group: ConsumerGroupDescription) -> dict[str, object]:
    node = group.coordinator
    return {
        "group": group.group_id,
        "type": group.type.capitalize(),
        "coordinator": {"id": node.id, "host": node.host, "port": node.port},
        "assignmentStrategy": group.assignor or None,
        "state": group.state,
        "groupEpoch": group.group_epoch,
        "targetAssignmentEpoch": group.target_assignment_epoch,
        "members": len(group.members),
    }
