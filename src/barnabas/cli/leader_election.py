"""`barnabas leader-election`: accepts the options of kafka-leader-election.sh; it needs a cluster, and says
so."""

import argparse
from pathlib import Path

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Elect leaders of partitions. With one broker, every partition has one replica, which is the leader: the
command says so and exits with code 1."""
EXAMPLES = """\
  barnabas leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions
  barnabas leader-election --bootstrap-server localhost:9092 --election-type unclean \\
      --topic orders --partition 0
"""


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
    raise ToolError(
        "Leader election needs a cluster of several brokers, which this release does not have: "
        "the only replica of a partition is its leader."
    )
