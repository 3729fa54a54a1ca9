"""`barnabas get-offsets`: offsets of partitions: the first, the last, or the one for a timestamp."""

import argparse
import re
import sys
from collections.abc import Callable

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json
from barnabas.cli.topic_filter import TopicFilter
from barnabas.client.admin import Admin, OffsetSpec
from barnabas.client.types import TopicPartition
from barnabas.errors import KafkaError

DESCRIPTION = """\
Print offsets of partitions as TOPIC:PARTITION:OFFSET. Without compaction and transactions, the number of
records of a topic is the sum of its latest offsets minus the sum of its earliest offsets."""
EXAMPLES = """\
  barnabas get-offsets --bootstrap-server localhost:9092 --topic orders
  barnabas get-offsets --bootstrap-server localhost:9092 --topic orders --time earliest
  barnabas get-offsets --bootstrap-server localhost:9092 --topic orders --time 1735689600000
  barnabas get-offsets --bootstrap-server localhost:9092 --topic-partitions 'orders:0,payments:2-,logs:-3'
"""

SPECS = {spec.name.lower().replace("_", "-"): spec for spec in OffsetSpec}
_RULE = re.compile(r"(?P<topic>[^:,]*)(:((?P<one>\d+)|(?P<first>\d*)-(?P<end>\d*))?)?")

Choice = Callable[[str, int], bool]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument(
        "--topic", help="a topic, several separated by commas, or a pattern; without it, all topics"
    )
    parser.add_argument("--partitions", metavar="N,N,...", help="only these partitions")
    parser.add_argument(
        "--topic-partitions",
        metavar="TOPIC:N,TOPIC:N-M,...",
        help="topic patterns, each with a partition or a range (N-M excludes M; also -M and N-)",
    )
    parser.add_argument(
        "--time",
        default="latest",
        metavar="TIME",
        help=f"a timestamp in ms, or {', '.join(f'{spec.value} or {name}' for name, spec in SPECS.items())}",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="leave out internal topics")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    choice = choice_of(options)
    when = spec_of(options.time)
    with admin_of(options) as admin:
        partitions, unknown = _partitions(admin, choice, options.exclude_internal_topics)
        if not partitions and not unknown:
            raise ToolError("Could not match any topic-partitions with the specified filters.")
        offsets, errors = results_and_errors(lambda: admin.list_offsets(dict.fromkeys(partitions, when)))
    existing = {partition: offset.offset for partition, offset in offsets.items() if offset.offset >= 0}
    # Sorted as text, which is Kafka's order: orders-10 comes before orders-2.
    rows = [(partition, existing[partition]) for partition in sorted(existing, key=str)]
    if options.json:
        print_json(
            [{"topic": where.topic, "partition": where.partition, "offset": offset} for where, offset in rows]
        )
    else:
        for (topic, partition), offset in rows:
            print(f"{topic}:{partition}:{offset}")
    failures = unknown | {str(partition): error for partition, error in errors.items()}
    for where, error in failures.items():
        print(
            f"Skip getting offsets for topic-partition {where} due to error: {error.message}", file=sys.stderr
        )
    return 1 if failures else 0


def _partitions(
    admin: Admin, choice: Choice, exclude_internal: bool
) -> tuple[list[TopicPartition], dict[str, KafkaError]]:
    names = list(admin.list_topics(include_internal=not exclude_internal))
    topics, errors = results_and_errors(
        lambda: admin.describe_topics([name for name in names if choice(name, -1)])
    )
    return [
        TopicPartition(topic.name, info.partition)
        for topic in topics.values()
        for info in topic.partitions
        if choice(topic.name, info.partition)
    ], errors


def spec_of(text: str) -> int:
    try:
        return SPECS[text] if text in SPECS else int(text)
    except ValueError:
        names = " / ".join(f"{spec.value} or {name}" for name, spec in SPECS.items())
        raise ToolError(f"Malformed time argument {text}. Use {names}, or a timestamp in ms.") from None


def choice_of(options: argparse.Namespace) -> Choice:
    """A function that says whether a partition is chosen. Partition -1 asks about any partition of the
    topic."""
    if options.topic_partitions is None:
        return _by_topic(options.topic, options.partitions)
    if options.topic is not None or options.partitions is not None:
        raise ToolError("--topic-partitions cannot be used with --topic or --partitions.")
    rules = [_rule(text) for text in options.topic_partitions.split(",")]
    return lambda topic, partition: any(rule(topic, partition) for rule in rules)


def _by_topic(topics: str | None, partitions: str | None) -> Choice:
    topic_filter = TopicFilter(".*" if topics is None else topics)
    try:
        numbers = {int(number) for number in partitions.split(",")} if partitions else set()
    except ValueError:
        raise ToolError(
            "--partitions expects a comma separated list of numeric partition ids, "
            f"but received: {partitions}."
        ) from None
    return lambda topic, partition: (
        topic_filter.allows(topic) and (not numbers or partition < 0 or partition in numbers)
    )


def _rule(text: str) -> Choice:
    matched = _RULE.fullmatch(text)
    if matched is None:
        raise ToolError(f"Invalid rule specification: {text}.")
    topic_filter = TopicFilter(matched["topic"] or ".*")
    if matched["one"]:
        first, end = int(matched["one"]), int(matched["one"]) + 1
    else:
        first = int(matched["first"] or 0)
        end = int(matched["end"]) if matched["end"] else sys.maxsize
    return lambda topic, partition: topic_filter.allows(topic) and (partition < 0 or first <= partition < end)
