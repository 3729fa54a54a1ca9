"""--reset-offsets: makes a plan of new offsets for each group; only --execute sets them."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.connecting import admin_of
from barnabas.cli.consumer_groups.options import chosen_groups, named_partitions, seconds
from barnabas.cli.consumer_groups.plans import (
    GroupOffsets,
    Plan,
    Strategy,
    plans_as_csv,
    read_plans,
    strategy_of,
    within_log,
)
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json, print_table
from barnabas.client.types import TopicPartition
from barnabas.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client import Admin

_INACTIVE = ("Empty", "Dead")


def reset_offsets(options: argparse.Namespace) -> int:
    plans: dict[str, Plan] = {}
    failures = 0
    with admin_of(options) as admin:
        groups = chosen_groups(options, admin)
        described, errors = results_and_errors(
            lambda: admin.describe_consumer_groups(groups, timeout=seconds(options))
        )
        states = {name: group.state for name, group in described.items()}
        resetter = _Resetter(admin, options, groups)
        for group in groups:
            try:
                _check_inactive(group, states.get(group), errors.get(group))
                plan = resetter.plan(group)
                if options.execute:
                    admin.alter_consumer_group_offsets(group, plan, timeout=seconds(options))
            except (ToolError, KafkaError) as error:
                failures += 1
                print(f"Error: {group}: {error}", file=sys.stderr)
            else:
                plans[group] = plan
    _print(options, plans)
    return 1 if failures else 0


def _check_inactive(group: str, state: str | None, error: KafkaError | None) -> None:
    if error is not None and error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        raise error
    if state is not None and state not in _INACTIVE:
        raise ToolError(
            f"Assignments can only be reset if the group '{group}' is inactive, "
            f"but the current state is {state}."
        )


class _Resetter:
    def __init__(self, admin: "Admin", options: argparse.Namespace, groups: list[str]) -> None:
        self._admin, self._options = admin, options
        self._timeout = seconds(options)
        self._strategy: Strategy | None = None
        self._from_file: dict[str, Plan] = {}
        if options.from_file is None:
            self._strategy = strategy_of(options)
        else:
            self._from_file = read_plans(Path(options.from_file), groups)

    def plan(self, group: str) -> Plan:
        group_offsets = GroupOffsets(self._admin, self._timeout, group)
        if self._strategy is None:
            if group not in self._from_file:
                raise ToolError(f"No reset plan for group {group} found")
            requested = self._from_file[group]
            self._check_exist(requested)
            return within_log(group_offsets, dict(sorted(requested.items())))
        return self._strategy(group_offsets, self._partitions(group_offsets))

    def _partitions(self, group_offsets: GroupOffsets) -> list[TopicPartition]:
        if self._options.all_topics:
            return sorted(group_offsets.committed())
        partitions, errors = named_partitions(self._admin, self._options.topic, self._timeout)
        if errors:
            topic, error = next(iter(errors.items()))
            raise ToolError(f"Topic '{topic}' cannot be reset: {error.message}")
        self._check_exist(partitions)
        return partitions

    def _check_exist(self, partitions: Mapping[TopicPartition, int] | list[TopicPartition]) -> None:
        topics = {partition.topic for partition in partitions}
        described, _ = results_and_errors(lambda: self._admin.describe_topics(topics, timeout=self._timeout))
        known = {
            TopicPartition(topic, info.partition)
            for topic, description in described.items()
            for info in description.partitions
        }
        missing = [str(partition) for partition in partitions if partition not in known]
        if missing:
            raise ToolError(f'The partitions "{", ".join(missing)}" do not exist')


def _print(options: argparse.Namespace, plans: dict[str, Plan]) -> None:
    if options.export:
        print(plans_as_csv(plans, with_group=len(options.group) != 1))
        return
    rows = [
        (group, topic, partition, offset)
        for group, plan in plans.items()
        for (topic, partition), offset in plan.items()
    ]
    if options.json:
        names = ("group", "topic", "partition", "newOffset")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print()
    if plans:
        headers = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
        print_table([headers, *(list(map(str, row)) for row in rows)], [15, 15, 10, 0])
