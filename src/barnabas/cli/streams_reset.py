"""`barnabas streams-application-reset`: lets an application of Kafka Streams begin again, as Kafka's "
"tool does."""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.consumer_groups.plans import GroupOffsets, Plan, datetime_ms, duration_ms, read_plans
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.client import Admin
from barnabas.client.admin.types import OffsetSpec
from barnabas.client.types import TopicPartition

DESCRIPTION = """\
Reset an application of Kafka Streams, so that it reads its input again: set the offsets of its input topics
(to the beginning, or as chosen), and delete its internal topics. Output topics stay. Stop all instances
before, and delete their local state after (KafkaStreams#cleanUp), or their results will be wrong. Try it
with --dry-run first."""
EXAMPLES = """\
  barnabas streams-application-reset --bootstrap-server localhost:9092 --application-id orders \\
      --input-topics orders,customers --dry-run
  barnabas streams-application-reset --bootstrap-server localhost:9092 --application-id orders \\
      --input-topics orders --to-datetime 2026-01-01T00:00:00.000
"""

TIMEOUT_SECONDS = 30.0
CHOICES = ("to_offset", "to_datetime", "by_duration", "to_earliest", "to_latest", "from_file", "shift_by")
_INTERNAL = re.compile(
    r".*-(changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(
        parser,
        server_flags=("--bootstrap-server", "--bootstrap-servers"),
        config_flags=("--command-config", "--config-file"),
    )
    add = parser.add_argument
    add("--application-id", required=True, metavar="ID", help="the application.id")
    for name in ("--input-topics", "--intermediate-topics", "--internal-topics"):
        add(name, action="append", default=[], metavar="TOPIC,...", help="topics of the application")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to-earliest", action="store_true", help="the first record (the default)")
    where.add_argument("--to-latest", action="store_true", help="the end")
    where.add_argument("--to-offset", type=int, metavar="N", help="this offset")
    where.add_argument("--to-datetime", metavar="TIME", help="the first record since this time")
    where.add_argument("--by-duration", metavar="DURATION", help="the first record since PnDTnHnMnS ago")
    where.add_argument("--shift-by", type=int, metavar="N", help="N records forward or back")
    where.add_argument("--from-file", type=Path, metavar="FILE", help="a file with topic,partition,offset")
    add("--force", action="store_true", help="remove members that are still in the group")
    add("--dry-run", action="store_true", help="only print what would be done")


def run(options: argparse.Namespace) -> int:
    if options.intermediate_topics:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    inputs, between = _names(options.input_topics), _names(options.intermediate_topics)
    with admin_of(options) as admin:
        _remove_members(admin, options)
        topics = sorted(admin.list_topics())
        if options.dry_run:
            print(
                "----Dry run displays the actions which will be performed when running Streams Reset Tool----"
            )
        code = _reset(admin, options, inputs, between, topics) if inputs or between else _nothing()
        _delete_internal(admin, options, topics, [*inputs, *between])
    return code


def _nothing() -> int:
    print("No input or intermediate topics specified. Skipping seek.")
    return 0


def _names(given: Sequence[str]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def _remove_members(admin: Admin, options: argparse.Namespace) -> None:
    group = options.application_id
    described, _ = results_and_errors(lambda: admin.describe_consumer_groups([group]))
    members = [member.member_id for each in described.values() for member in each.members]
    if not members:
        return
    if not options.force:
        raise ToolError(
            f"Consumer group '{group}' is still active and has following members: {', '.join(members)}. "
            "Make sure "
            "to stop all running application instances before running the reset tool. You can use option "
            "'--force' "
            "to remove active members from the group."
        )
    print(f"Force deleting all active members in the group: {group}")
    if not options.dry_run:
        admin.remove_members_from_consumer_group(group)


def _reset(
    admin: Admin, options: argparse.Namespace, inputs: list[str], between: list[str], topics: list[str]
) -> int:
    if inputs:
        print(f"Reset-offsets for input topics [{', '.join(inputs)}]")
    if between:
        print(f"Seek-to-end for intermediate topics [{', '.join(between)}]")
    missing = False
    for kind, names, space in (("input", inputs, " "), ("intermediate", between, "")):
        unknown = [name for name in names if name not in topics]
        if unknown:
            missing = True
            print(f"Following {kind} topics are not found, skipping them")
            print("\n".join(f"Topic:{space}{name}" for name in unknown))
    group = GroupOffsets(admin, TIMEOUT_SECONDS, options.application_id)
    plan: Plan = {}
    known = [name for name in inputs if name in topics]
    if known:
        print(f"Following input topics offsets will be reset to (for consumer group {group.group})")
        plan |= _plan(group, options, _partitions(admin, known))
        for (topic, partition), offset in sorted(plan.items()):
            print(f"Topic: {topic} Partition: {partition} Offset: {offset}")
    ends = [name for name in between if name in topics]
    if ends:
        print(
            f"Following intermediate topics offsets will be reset to end (for consumer group {group.group})"
        )
        print("\n".join(f"Topic: {name}" for name in ends))
        plan |= group.listed(_partitions(admin, ends), OffsetSpec.LATEST)
    if plan and not options.dry_run:
        admin.alter_consumer_group_offsets(group.group, plan)
    if plan:
        print("Done.")
    return 1 if missing else 0


def _partitions(admin: Admin, topics: list[str]) -> list[TopicPartition]:
    described = admin.describe_topics(topics)
    return sorted(
        TopicPartition(topic, info.partition) for topic, each in described.items() for info in each.partitions
    )


def _plan(group: GroupOffsets, options: argparse.Namespace, partitions: list[TopicPartition]) -> Plan:
    if options.to_latest:
        return group.listed(partitions, OffsetSpec.LATEST)
    if options.to_datetime is not None:
        return _since(group, partitions, datetime_ms(options.to_datetime))
    if options.by_duration is not None:
        return _since(group, partitions, int(time.time() * 1000) - duration_ms(options.by_duration))
    starts = group.listed(partitions, OffsetSpec.EARLIEST)
    if options.to_offset is not None:
        return _within(group, dict.fromkeys(partitions, options.to_offset), starts)
    if options.shift_by is not None:
        # Without a committed offset it is the end, where Kafka's consumer begins by default.
        current = {**group.listed(partitions, OffsetSpec.LATEST), **group.committed()}
        wanted = {each: current[each] + options.shift_by for each in partitions}
        return _within(group, wanted, starts)
    if options.from_file is not None:
        read = read_plans(options.from_file, [group.group]).get(group.group, {})
        return _within(group, {each: read.get(each, starts[each]) for each in partitions}, starts)
    return starts


def _since(group: GroupOffsets, partitions: list[TopicPartition], moment_ms: int) -> Plan:
    plan = group.listed(partitions, max(0, moment_ms))
    without = [each for each, offset in plan.items() if offset < 0]
    for topic, partition in without:
        print(
            f"Partition {partition} from topic {topic} is empty, without a committed record. "
            "Falling back to latest known offset."
        )
    return {**plan, **(group.listed(without, OffsetSpec.LATEST) if without else {})}


def _within(group: GroupOffsets, wanted: Plan, starts: Plan) -> Plan:
    ends = group.listed(list(wanted), OffsetSpec.LATEST)
    plan: Plan = {}
    for partition, offset in wanted.items():
        plan[partition] = min(max(offset, starts[partition]), ends[partition])
        if offset >= ends[partition]:
            print(
                f"New offset ({offset}) is higher than latest offset. Value will be set to {plan[partition]}"
            )
        elif offset <= starts[partition]:
            print(
                f"New offset ({offset}) is lower than earliest offset. Value will be set to {plan[partition]}"
            )
    return plan


def _delete_internal(
    admin: Admin, options: argparse.Namespace, topics: list[str], used: Sequence[str]
) -> None:
    prefix = f"{options.application_id}-"
    found = [
        name for name in topics if name.startswith(prefix) and _INTERNAL.fullmatch(name) and name not in used
    ]
    chosen = _names(options.internal_topics)
    if not set(chosen) <= set(found):
        raise ToolError(
            "Invalid topic specified in the --internal-topics option. Do a dry run without it to see the "
            "internal "
            "topics that can be deleted."
        )
    deleted = chosen or found
    print(f"Deleting {'specified' if chosen else 'inferred'} internal topics [{', '.join(deleted)}]")
    if deleted and not options.dry_run:
        _, errors = results_and_errors(lambda: admin.delete_topics(deleted))
        for name, error in errors.items():
            print(f"ERROR: deleting topic {name}: {error.message}", file=sys.stderr)
        if errors:
            raise ToolError("Encountered an error deleting one or more topics")
    print("Done.")
