"""`barnabas console`: the web console, until Ctrl-C."""

import argparse
import contextlib
import ipaddress
import os
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError

if TYPE_CHECKING:
    from barnabas.console.serving import ConsoleServer

DESCRIPTION = """\
Serve a web page that shows the cluster and changes it: topics, messages, groups, brokers, replication,
transactions, ACLs, pipelines. It works with any brokers that speak Kafka's protocol, and listens on localhost
unless told otherwise. docs/console.md explains it."""
EXAMPLES = """\
  barnabas console --bootstrap-server localhost:9092            then open http://127.0.0.1:8080
  barnabas console --bootstrap-server localhost:9092 --read-only --mask 'orders:$.card'
  barnabas console --bootstrap-server host:9093 --command-config client.properties
                                                                with security.protocol=SASL_SSL: users log in
"""
DEFAULT_PORT = 8080
PARENT_SECONDS = 1.0
OPEN = (
    "Warning: other machines can reach the console, without encryption. {who}; put a proxy with TLS "
    "before it, or leave --host out."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="the port of the page; 0 means a free port (8080)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (127.0.0.1: only this machine)"
    )
    parser.add_argument("--read-only", action="store_true", help="refuse everything that changes the cluster")
    parser.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="TOPIC:PATH",
        help="hide a part of messages, such as 'orders:$.card', 'orders:key'; may be repeated",
    )
    parser.add_argument(
        "--pipeline",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="show this pipeline too; may be repeated",
    )
    parser.add_argument("--schema-registry", metavar="URL", help="decode Avro with the schemas of a registry")
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name of this machine in addresses of browsers, for example that of a proxy; may be repeated",
    )
    # For --console-port of other commands: the console ends when that process is gone.
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    server = server_of(options)
    if not _is_local(options.host):
        who = "Users log in" if server.settings.login_required else "It needs no login"
        print(OPEN.format(who=who), file=sys.stderr)
    if options.parent is None:
        print(f"The console is at {server.url} (Ctrl-C stops it).", flush=True)
    else:
        print(f"The console is at {server.url}", flush=True)
        threading.Thread(target=_follow, args=(server, options.parent), daemon=True).start()
    # uvicorn has stopped properly when it passes the interrupt on.
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    return 0


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _follow(server: "ConsoleServer", parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    server.stop()


def check_installed() -> None:
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ToolError("The console needs two more packages: pip install 'barnabas[console]'.")


def server_of(options: argparse.Namespace) -> "ConsoleServer":
    """The console with these options, bound to its port but not serving yet."""
    check_installed()
    from barnabas.cli.connecting import client_settings
    from barnabas.client.keys import ADMIN_KEYS, PRODUCER_KEYS
    from barnabas.console.failures import ApiError
    from barnabas.console.masks import Masks
    from barnabas.console.serving import ConsoleServer
    from barnabas.console.settings import ConsoleSettings

    try:
        masks = Masks(options.mask)
    except (ValueError, ApiError) as error:
        raise ToolError(str(error)) from None
    settings = ConsoleSettings(
        client=client_settings(options, keys={**ADMIN_KEYS, **PRODUCER_KEYS}),
        host=options.host,
        port=options.port,
        read_only=options.read_only,
        masks=masks,
        pipelines=tuple(options.pipeline),
        schema_registry=options.schema_registry,
        allowed_hosts=tuple(options.allowed_host),
    )
    try:
        return ConsoleServer(settings)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a port is at most 65535"
        raise ToolError(
            f"Port {options.port} of {options.host} cannot be used ({reason}): "
            "choose another one with --port."
        ) from error
