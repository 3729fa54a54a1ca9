"""`barnabas log-dirs`: the partitions in the log directories of brokers, and their sizes."""

import argparse
import json
from typing import Any

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError, print_errors, results_and_errors
from barnabas.cli.output import print_json
from barnabas.client.admin import LogDirDescription

DESCRIPTION = """\
Print the log directories of brokers with the partitions in them, as JSON: size in bytes, lag behind the
leader, and whether a partition is still being moved into the directory."""
EXAMPLES = """\
  barnabas log-dirs --bootstrap-server localhost:9092 --describe
  barnabas log-dirs --bootstrap-server localhost:9092 --describe --topic-list orders --broker-list 1,2
  barnabas log-dirs --bootstrap-server localhost:9092 --describe --json | jq '.brokers[].logDirs[].logDir'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    parser.add_argument("--describe", action="store_true", help="print the directories")
    parser.add_argument("--topic-list", default="", metavar="TOPIC,...", help="only these topics")
    parser.add_argument("--broker-list", default="", metavar="ID,...", help="only these brokers")
    parser.add_argument("--json", action="store_true", help="print the JSON alone, indented")


def run(options: argparse.Namespace) -> int:
    if not options.describe:
        raise ToolError('Missing required argument "[describe]": it is the only action of log-dirs.')
    topics = {name for name in options.topic_list.split(",") if name}
    try:
        requested = {int(broker) for broker in options.broker_list.split(",") if broker}
    except ValueError:
        raise ToolError(f"--broker-list {options.broker_list} must be numbers separated by commas.") from None
    with admin_of(options) as admin:
        known = {node.id for node in admin.describe_cluster().nodes}
        if requested - known:
            raise ToolError(
                f"The given brokers do not exist from --broker-list: {_ids(requested - known)}. "
                f"Current existent brokers: {_ids(known)}"
            )
        brokers = sorted(requested or known)
        if not options.json:
            print("Querying brokers for log directories information")
        described, errors = results_and_errors(lambda: admin.describe_log_dirs(brokers))
    document = as_json(described, topics)
    if options.json:
        print_json(document)
    else:
        print(f"Received log directory information from brokers {_ids(set(described))}")
        print(json.dumps(document, separators=(",", ":")))
    return print_errors({f"broker {broker}": error for broker, error in errors.items()})


def _ids(brokers: set[int]) -> str:
    return ",".join(map(str, sorted(brokers)))


def as_json(described: dict[int, dict[str, LogDirDescription]], topics: set[str]) -> dict[str, Any]:
    """The JSON document of Kafka's tool; with `topics`, only their partitions."""
    return {
        "brokers": [
            {
                "broker": broker,
                "logDirs": [
                    {
                        "partitions": _partitions(directory, topics),
                        "error": None if directory.error is None else directory.error.code.name,
                        "logDir": path,
                    }
                    for path, directory in described[broker].items()
                ],
            }
            for broker in sorted(described)
        ],
        "version": 1,
    }


def _partitions(directory: LogDirDescription, topics: set[str]) -> list[dict[str, Any]]:
    return [
        {
            "partition": str(partition),
            "size": replica.size,
            "offsetLag": replica.offset_lag,
            "isFuture": replica.is_future,
        }
        for partition, replica in sorted(directory.replicas.items())
        if not topics or partition.topic in topics
    ]
