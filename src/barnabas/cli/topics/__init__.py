"""`barnabas topics`: create, list, describe, alter and delete topics, as kafka-topics.sh does."""

import argparse
import os
import sys
from collections.abc import Callable

from barnabas.cli.connecting import admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.topics import changing, describing
from barnabas.cli.topics.arguments import add_arguments, check
from barnabas.client.admin import Admin

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = "Create, list, describe, alter or delete topics."
EXAMPLES = """\
  barnabas topics --bootstrap-server localhost:9092 --create --topic orders --partitions 3 \\
      --config retention.ms=86400000
  barnabas topics --bootstrap-server localhost:9092 --list
  barnabas topics --bootstrap-server localhost:9092 --describe --topic 'orders|payments'
  barnabas topics --bootstrap-server localhost:9092 --describe --unavailable-partitions
  barnabas topics --bootstrap-server localhost:9092 --alter --topic orders --partitions 6
  barnabas topics --bootstrap-server localhost:9092 --delete --topic 'test-.*'
"""

ACTIONS: dict[str, Callable[[Admin, argparse.Namespace], int]] = {
    "list": describing.list_names,
    "describe": describing.describe,
    "create": changing.create,
    "alter": changing.alter,
    "delete": changing.delete,
}


def run(options: argparse.Namespace) -> int:
    action = check(options)
    with admin_of(options) as admin:
        try:
            return ACTIONS[action](admin, options)
        except ToolError as error:
            if os.environ.get("BARNABAS_TRACEBACK"):
                raise
            # Scripts look for this line on standard output, where Kafka's tool writes it.
            stream = sys.stderr if options.json else sys.stdout
            print(f"Error while executing topic command : {error}", file=stream)
            return 1
