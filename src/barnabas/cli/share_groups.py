"""`barnabas share-groups`: Kafka's tool for share groups (KIP-932), which Barnabas does not have."""

import argparse

from barnabas.cli.unsupported_groups import add_group_arguments, list_or_refuse

DESCRIPTION = """\
List share groups. Barnabas does not have them, so the list of one of our clusters is empty, and all other
actions are refused."""
EXAMPLES = """\
  barnabas share-groups --bootstrap-server localhost:9092 --list
"""
INSTEAD = (
    "For queues with several workers per partition see ConsumerWorkers in docs/clients.md; "
    "`barnabas groups --list` shows the groups that there are."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)


def run(options: argparse.Namespace) -> int:
    return list_or_refuse(options, "share", INSTEAD)
