"""--delete and --delete-offsets: deletes groups, or their committed offsets of some topics."""

import argparse
import sys

from barnabas.cli.connecting import admin_of
from barnabas.cli.consumer_groups.options import chosen_groups, named_partitions, seconds
from barnabas.cli.failures import results_and_errors
from barnabas.cli.output import MISSING, print_json, print_table
from barnabas.errors import KafkaError


def delete_groups(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        groups = chosen_groups(options, admin)
        _, errors = results_and_errors(lambda: admin.delete_consumer_groups(groups, timeout=seconds(options)))
    deleted = [group for group in groups if group not in errors]
    named = ", ".join(f"'{group}'" for group in deleted)
    if options.json:
        print_json([_outcome({"group": group}, errors.get(group)) for group in groups])
    elif not errors:
        print(f"Deletion of requested consumer groups ({named}) was successful.")
    elif deleted:
        print(f"These consumer groups were deleted successfully: {named}")
    if errors:
        print("\nError: Deletion of some consumer groups failed:", file=sys.stderr)
    for group, error in errors.items():
        print(f"* Group '{group}' could not be deleted due to: {error.message}", file=sys.stderr)
    return 1 if errors else 0


def delete_offsets(options: argparse.Namespace) -> int:
    (group,) = options.group
    with admin_of(options) as admin:
        partitions, unknown = named_partitions(admin, options.topic, seconds(options))
        _, errors = (
            results_and_errors(
                lambda: admin.delete_consumer_group_offsets(group, partitions, timeout=seconds(options))
            )
            if partitions
            else ({}, {})
        )
    outcomes: list[tuple[str, int | None, KafkaError | None]] = [
        (partition.topic, partition.partition, errors.get(partition)) for partition in partitions
    ]
    outcomes += [(topic, None, error) for topic, error in unknown.items()]
    outcomes.sort(key=lambda outcome: (outcome[0], -1 if outcome[1] is None else outcome[1]))
    if errors or unknown:
        print(f"Error: Some offsets of group {group} were not deleted.", file=sys.stderr)
    if options.json:
        print_json([_outcome({"topic": topic, "partition": part}, error) for topic, part, error in outcomes])
    else:
        _print(group, outcomes)
    return 1 if errors or unknown else 0


def _print(group: str, outcomes: list[tuple[str, int | None, KafkaError | None]]) -> None:
    if all(error is None for _, _, error in outcomes):
        print(f"Request succeeded for deleting offsets from group {group}.")
    lines = [
        [
            topic,
            MISSING if partition is None else str(partition),
            "Successful" if error is None else f"Error: {error.message}",
        ]
        for topic, partition, error in outcomes
    ]
    print()
    print_table([["TOPIC", "PARTITION", "STATUS"], *lines], [15, -10, -15])


def _outcome(item: dict[str, object], error: KafkaError | None) -> dict[str, object]:
    return {**item, "error": None if error is None else error.message}
