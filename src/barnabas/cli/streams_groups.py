"""`barnabas streams-groups`: Kafka's tool for streams groups (KIP-1071), which Barnabas does not have."""

import argparse

from barnabas.cli.unsupported_groups import add_group_arguments, list_or_refuse

DESCRIPTION = """\
List streams groups. Barnabas does not have them: applications of Kafka Streams use classic groups here. The
list of one of our clusters is empty, and all other actions are refused."""
EXAMPLES = """\
  barnabas streams-groups --bootstrap-server localhost:9092 --list
"""
INSTEAD = (
    "Applications of Kafka Streams use classic groups here: see `barnabas consumer-groups` "
    "and `barnabas streams-application-reset`."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)


def run(options: argparse.Namespace) -> int:
    return list_or_refuse(options, "streams", INSTEAD)
