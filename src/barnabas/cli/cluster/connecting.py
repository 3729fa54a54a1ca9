"""How the verbs of `barnabas cluster` find a running cluster."""

import argparse
from typing import TYPE_CHECKING

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError

if TYPE_CHECKING:
    from barnabas.client import Admin


def add_cluster_connection(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(
        parser,
        server_flags=("--bootstrap-server", "-b"),
        config_flags=("--command-config", "--config", "-c"),
        server_group=server,
    )
    server.add_argument(
        "--bootstrap-controller", "-C", metavar="HOST:PORT", help="refused: every controller is a broker here"
    )


def admin_of_cluster(options: argparse.Namespace) -> "Admin":
    if options.bootstrap_server is None:
        raise ToolError(
            "There are no separate controllers: use --bootstrap-server HOST:PORT "
            "with the address of a broker."
        )
    return admin_of(options)
