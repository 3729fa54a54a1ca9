"""Checks of what a broker or a pipeline talks to: ports, ZooKeeper, a running broker, Spark."""

import argparse
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from barnabas.cli.doctor.finding import Finding, ok, problem
from barnabas.config.listeners import Listener
from barnabas.net.addresses import why_not_bound

ANSWER_SECONDS = 5.0
IMPORT_SECONDS_MAX = 60.0
ANSWER_BYTES_MAX = 65536


def port(host: str, number: int) -> Finding:
    """Whether a broker could listen there."""
    check = f"port {number}"
    if number == 0:
        return ok(check, "any free port")
    try:
        with socket.create_server((host or "0.0.0.0", number), reuse_port=False):
            return ok(check, f"free on {host or 'all addresses'}")
    except OSError as error:
        remedy = "Stop the other process, or choose another port with --port or listeners."
        return problem(check, why_not_bound(host, number, error).partition(". ")[0].rstrip("."), remedy)


def listeners(configured: tuple[Listener, ...], metrics: tuple[str, int]) -> Iterator[Finding]:
    for listener in configured:
        yield port(listener.host, listener.port)
    if metrics[1] >= 0:
        yield port(*metrics)


def zookeeper(connect: str | None, *, is_needed: bool) -> Iterator[Finding]:
    if connect is None:
        if is_needed:
            yield problem(
                "zookeeper",
                "not named",
                "Set zookeeper.connect in the settings (--config), or name it with --zookeeper HOST:PORT.",
            )
        return
    for item in connect.partition("/")[0].split(","):
        host, _, number = item.strip().rpartition(":")
        yield _zookeeper_server(host or item.strip(), int(number) if host and number.isdecimal() else 2181)


def _zookeeper_server(host: str, number: int) -> Finding:
    check = f"zookeeper {host}:{number}"
    try:
        with socket.create_connection((host, number), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(b"srvr")
            answer = connection.recv(ANSWER_BYTES_MAX).decode(errors="replace")
    except TimeoutError:
        return ok(check, "accepts connections; does not tell its state (TLS, or srvr is not allowed)")
    except OSError as error:
        return problem(
            check,
            f"no answer: {error.strerror or error}",
            "Start it (`barnabas zookeeper` runs one), or correct zookeeper.connect.",
        )
    facts = dict(line.partition(": ")[::2] for line in answer.splitlines())
    return ok(
        check,
        f"{facts.get('Mode', 'accepts connections')}, version {facts.get('Zookeeper version', '?')}"[:100],
    )


def broker(options: argparse.Namespace) -> Iterator[Finding]:
    """A running broker, if one was named."""
    if options.bootstrap_server is None:
        return
    from barnabas.cli.connecting import admin_of
    from barnabas.cli.failures import ToolError
    from barnabas.errors import KafkaError

    check = f"broker {options.bootstrap_server}"
    try:
        with admin_of(options) as admin:
            cluster = admin.describe_cluster(timeout=ANSWER_SECONDS)
    except (ToolError, KafkaError) as error:
        yield problem(check, "does not answer", str(error))
        return
    names = ", ".join(str(node.id) for node in sorted(cluster.nodes))
    yield ok(
        check, f"cluster {cluster.cluster_id} with broker{'s' if len(cluster.nodes) > 1 else ''} {names}"
    )


def spark(master: str | None, *, is_needed: bool) -> Iterator[Finding]:
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        found = "not installed; only needed for pipelines and jobs"
        yield problem("spark", found, "pip install 'barnabas[spark]'", is_needed=is_needed)
        return
    yield ok("spark", f"pyspark {version}")
    if is_needed:
        # It takes some seconds.
        yield _spark_python()
    if master is not None and master.startswith("spark://"):
        yield from _spark_master(master)


def _spark_python() -> Finding:
    """Start Python as Spark starts it for its workers, and import what they need."""
    beside = Path(sys.executable).parent / "barnabas-python"
    program = os.environ.get("PYSPARK_PYTHON") or (
        str(beside) if beside.exists() else shutil.which("barnabas-python")
    )
    if program is None:
        return problem(
            "spark workers",
            "barnabas-python is not on the path",
            "Install the package into the environment of the workers: pip install 'barnabas[spark]'",
        )
    command = [program, "-c", "import pyspark, pyarrow, barnabas.spark; print(pyspark.__version__)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS_MAX)
        failure = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = [str(error)]
    if failure:
        return problem(
            "spark workers",
            f"{program}: {failure[0]}",
            "Install the package there: pip install 'barnabas[spark]'; PYSPARK_PYTHON chooses another "
            "Python.",
        )
    return ok("spark workers", f"{program} has what they need; {os.cpu_count()} cores here")


def _spark_master(master: str) -> Iterator[Finding]:
    for item in master.removeprefix("spark://").split(","):
        host, _, number = item.rpartition(":")
        check = f"spark master {item}"
        try:
            socket.create_connection((host, int(number)), timeout=ANSWER_SECONDS).close()
            yield ok(check, "accepts connections")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            yield problem(check, f"no answer: {reason}", "Start the master, or correct --spark-master.")
