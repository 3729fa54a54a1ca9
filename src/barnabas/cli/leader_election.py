"""`barnabas leader-election`: elects leaders of partitions, as kafka-leader-election.sh does."""

import argparse
import json
from pathlib import Path

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.client.admin import ElectionType
from barnabas.client.types import TopicPartition
from barnabas.errors import ErrorCode, KafkaError

DESCRIPTION = """\
Elect leaders of partitions: the preferred ones, which are the first replicas, or, for partitions without a
leader, replicas that are not in sync (unclean: records may be lost)."""
EXAMPLES = """\
  barnabas leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions
  barnabas leader-election --bootstrap-server localhost:9092 --election-type unclean \\
      --topic orders --partition 0
"""
TIMEOUT_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(
        parser,
        server_flags=("--bootstrap-server",),
        config_flags=("--command-config", "--admin.config"),
    )
    parser.add_argument(
        "--election-type",
        type=str.lower,
        required=True,
        choices=("preferred", "unclean"),
        help="preferred: make the first replica the leader; unclean: allow a replica that is not in sync",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", help="a topic, with --partition")
    which.add_argument("--path-to-json-file", type=Path, metavar="FILE", help="partitions, as JSON")
    which.add_argument("--all-topic-partitions", action="store_true", help="every partition")
    parser.add_argument("--partition", type=int, help="the partition of --topic")


def run(options: argparse.Namespace) -> int:
    if (options.topic is None) != (options.partition is None):
        raise ToolError("--topic and --partition must be used together.")
    kind = ElectionType[options.election_type.upper()]
    partitions = _partitions(options)
    with admin_of(options) as admin:
        outcomes = admin.elect_leaders(kind, partitions, timeout=TIMEOUT_SECONDS)
    return report(kind, outcomes)


def report(kind: ElectionType, outcomes: dict[TopicPartition, KafkaError | None]) -> int:
    """Print what has happened, in Kafka's words. Returns the exit code."""
    unchanged = [
        partition
        for partition, error in outcomes.items()
        if error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED
    ]
    failed = {
        partition: error
        for partition, error in outcomes.items()
        if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    if elected := [partition for partition, error in outcomes.items() if error is None]:
        print(f"Successfully completed leader election ({kind.name}) for partitions {_names(elected)}")
    if unchanged:
        print(f"Valid replica already elected for partitions {_names(unchanged)}")
    for partition, error in sorted(failed.items()):
        print(
            f"Error completing leader election ({kind.name}) for partition: {_names([partition])}: "
            f"{error.code.name}: {error.message}"
        )
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")
    return 0


def _names(partitions: list[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))


def _partitions(options: argparse.Namespace) -> list[TopicPartition] | None:
    """The partitions of the options; None for all."""
    if options.all_topic_partitions:
        return None
    if options.topic is not None:
        return [TopicPartition(options.topic, options.partition)]
    return _read_partitions(options.path_to_json_file)


def _read_partitions(path: Path) -> list[TopicPartition]:
    try:
        entries = json.loads(path.read_text())["partitions"]
        partitions = [TopicPartition(str(entry["topic"]), int(entry["partition"])) for entry in entries]
    except (ValueError, TypeError, KeyError) as error:
        raise ToolError(
            f'{path} must be JSON such as {{"partitions": [{{"topic": "orders", "partition": 0}}]}} '
            f"({type(error).__name__}: {error})."
        ) from error
    if repeated := sorted({each for each in partitions if partitions.count(each) > 1}):
        raise ToolError(f"Replica election data contains duplicate partitions: {_names(repeated)}")
    return partitions
