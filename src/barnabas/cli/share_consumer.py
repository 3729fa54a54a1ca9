"""`barnabas console-share-consumer`: Kafka's tool for reading in a share group, which Barnabas does not
have."""

import argparse

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Barnabas has no share groups (KIP-932), so nothing can be read with them. `barnabas console-consumer` reads
in a group of consumers, with the same options."""
EXAMPLES = """\
  barnabas console-share-consumer --bootstrap-server localhost:9092 --topic orders
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, config_flags=("--command-config", "--consumer-config"))
    values = ("topic", "group", "max-messages", "timeout-ms", "formatter", "formatter-config")
    for name in (*values, "key-deserializer", "value-deserializer"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    for name in ("property", "formatter-property", "consumer-property", "command-property"):
        parser.add_argument(f"--{name}", action="append", help=argparse.SUPPRESS)
    for name in ("reject", "release", "reject-message-on-error", "enable-systest-events"):
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    raise ToolError(
        "Barnabas has no share groups: read with `barnabas console-consumer`, and for several workers per "
        "partition see ConsumerWorkers in docs/clients.md."
    )
