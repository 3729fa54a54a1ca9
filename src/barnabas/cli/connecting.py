"""The options with which every tool finds its brokers, and the clients created from them."""

import argparse
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.config.properties import load_properties

if TYPE_CHECKING:
    from barnabas.client import Admin

# How long a tool waits for a broker that is just starting. It is short, so that a wrong address is noticed
# soon.
PATIENCE_SECONDS = 3.0
PAUSE_SECONDS = 0.1


def add_connection(
    parser: argparse.ArgumentParser,
    *,
    server_flags: tuple[str, ...] = ("--bootstrap-server", "--broker-list"),
    config_flags: tuple[str, ...] = ("--command-config",),
    server_group: argparse._MutuallyExclusiveGroup | None = None,
) -> None:
    """`server_group`: the group of the address option, if another option may replace it."""
    (server_group or parser).add_argument(
        *server_flags,
        dest="bootstrap_server",
        required=server_group is None,
        metavar="HOST:PORT",
        help="a broker, or several with commas between them",
    )
    parser.add_argument(
        *config_flags,
        dest="command_config",
        type=Path,
        metavar="FILE",
        help="a properties file with settings of the client",
    )


def client_settings(
    options: argparse.Namespace, extra: Mapping[str, Any] | None = None, *, keys: Mapping[str, object]
) -> dict[str, Any]:
    """Settings of a client: those of the command line win over those of the file. Kafka's files have settings
    for several clients, so keys that this client does not know are left out."""
    settings: dict[str, Any] = {}
    if options.command_config is not None:
        read = load_properties(options.command_config.read_text())
        settings = {key: value for key, value in read.items() if key in keys}
    settings["bootstrap.servers"] = options.bootstrap_server
    return {**settings, **(extra or {})}


def admin_of(options: argparse.Namespace) -> "Admin":
    from barnabas.client import Admin
    from barnabas.client.config import admin_config
    from barnabas.client.keys import ADMIN_KEYS

    settings = client_settings(options, {"client.id": "barnabas-cli"}, keys=ADMIN_KEYS)
    await_broker(admin_config(settings).servers)
    return Admin(settings)


def await_broker(servers: Sequence[tuple[str, int]]) -> None:
    """Return when one of the servers accepts a connection. The clients themselves try for much longer, which
    is right for services but confuses a user who has mistyped a port."""
    from barnabas.cli.failures import ToolError
    from barnabas.net.refusals import why_not_connected

    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        for host, port in servers:
            try:
                socket.create_connection((host, port), timeout=PATIENCE_SECONDS).close()
                return
            except (OSError, UnicodeError) as error:
                failure = why_not_connected(host, port, error)
        if time.monotonic() >= give_up:
            break
        time.sleep(PAUSE_SECONDS)
    named = ", ".join(f"{host}:{port}" for host, port in servers)
    raise ToolError(
        f"No broker answers at {named}: {failure}. Start one with `barnabas start`, or give "
        "the address of a running one with --bootstrap-server."
    )


def key_values(pairs: list[str], option: str) -> dict[str, str]:
    """The values of a repeated KEY=VALUE option; spaces around a value are removed."""
    from barnabas.cli.properties import read_pairs

    return {key: value.strip() for key, value in read_pairs(pairs, option).items()}
