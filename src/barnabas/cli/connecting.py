"""The options by which every tool finds its brokers, and the clients made from them."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.config.properties import load_properties

if TYPE_CHECKING:
    from barnabas.client import Admin


def add_connection(
    parser: argparse.ArgumentParser, *, config_flags: tuple[str, ...] = ("--command-config",)
) -> None:
    parser.add_argument(
        "--bootstrap-server",
        "--broker-list",
        dest="bootstrap_server",
        required=True,
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
    """Settings of a client: the file's, those of the command line above them. Kafka's files hold settings for
    several clients at once, so that keys of others are left out."""
    settings: dict[str, Any] = {}
    if options.command_config is not None:
        read = load_properties(options.command_config.read_text())
        settings = {key: value for key, value in read.items() if key in keys}
    settings["bootstrap.servers"] = options.bootstrap_server
    return {**settings, **(extra or {})}


def admin_of(options: argparse.Namespace) -> "Admin":
    from barnabas.client import Admin
    from barnabas.client.keys import ADMIN_KEYS

    return Admin(client_settings(options, {"client.id": "barnabas-cli"}, keys=ADMIN_KEYS))


def key_values(pairs: list[str], option: str) -> dict[str, str]:
    """KEY=VALUE options that may be repeated."""
    from barnabas.cli.failures import ToolError

    found: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise ToolError(f"{option} {pair!r} must be written KEY=VALUE.")
        found[key.strip()] = value.strip()
    return found
