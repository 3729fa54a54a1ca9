"""`barnabas zookeeper start`: run a ZooKeeper server from the jars in pyspark's wheel."""

import argparse
import os
import sys
from pathlib import Path

from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Run one ZooKeeper server until SIGTERM or Ctrl-C, from the jars in pyspark's wheel or those of --jars.
Brokers find it with zookeeper.connect. For production any ZooKeeper from version 3.8 on can be used."""
EXAMPLES = """\
  barnabas zookeeper start --data-dir ./zookeeper            a single server on 127.0.0.1:2181
  barnabas zookeeper start --data-dir D --host 0.0.0.0 --id 1 \\
      --server 1=a:2888:3888 --server 2=b:2888:3888 --server 3=c:2888:3888
                                                             the first server of three
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", choices=["start"], help="what to do")
    parser.add_argument("--port", type=int, default=2181, help="port for clients (default: 2181)")
    parser.add_argument("--host", default="127.0.0.1", help="address for clients (default: 127.0.0.1)")
    parser.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="where the data is")
    parser.add_argument("--jars", type=Path, metavar="DIR", help="a directory with ZooKeeper's jars")
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="ID=HOST:PORT:PORT",
        help="a server of an ensemble, with its ports for followers and for elections; may be repeated",
    )
    parser.add_argument("--id", type=int, help="the number of this server in its ensemble")
    parser.add_argument("--log-level", default="WARN", choices=["DEBUG", "INFO", "WARN", "ERROR"])


def run(options: argparse.Namespace) -> int:
    # Imported late: other commands do not need it.
    from barnabas.testing.zookeeper_server import ServerSettings, ZooKeeperUnavailable, server_command

    servers = dict(map(server_of, options.server))
    check_ensemble(servers, options.id)
    settings = ServerSettings(
        options.port,
        options.data_dir,
        host=options.host,
        servers=servers,
        server_id=options.id,
        log_level=options.log_level,
    )
    try:
        command = server_command(settings, options.jars)
    except ZooKeeperUnavailable as error:
        raise ToolError(f"{error}.") from error
    print(f"ZooKeeper on {options.host}:{options.port}, data in {options.data_dir}", flush=True)
    sys.stderr.flush()
    # Java replaces this process, so signals and the process id are those of ZooKeeper.
    os.execv(command[0], command)


def server_of(text: str) -> tuple[int, str]:
    number, separator, address = text.partition("=")
    if not separator or not number.isdigit() or address.count(":") < 2:
        raise ToolError(f"--server {text}: expected ID=HOST:PORT:PORT, for example 1=zk1:2888:3888.")
    return int(number), address


def check_ensemble(servers: dict[int, str], server_id: int | None) -> None:
    if servers and server_id is None:
        raise ToolError("An ensemble needs --id, the number of this server among those of --server.")
    if server_id is not None and server_id not in servers:
        raise ToolError(f"--id {server_id} is not the number of any --server.")
