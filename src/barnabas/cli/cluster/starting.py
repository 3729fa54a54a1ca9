"""`barnabas cluster start`: a ZooKeeper and brokers as processes, with their output, until Ctrl-C."""

import argparse
import fcntl
import json
import shlex
import signal
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import NoReturn

from barnabas.cli.cluster.following import FollowedOutput
from barnabas.cli.connecting import key_values
from barnabas.cli.console import check_installed
from barnabas.cli.console_process import ConsoleProcess
from barnabas.cli.failures import ToolError
from barnabas.cli.secure import SecureFiles, how_to_connect, listeners
from barnabas.testing.broker_process import BrokerProcess
from barnabas.testing.local_cluster import LocalCluster
from barnabas.testing.ports import free_ports
from barnabas.testing.zookeeper import ZooKeeper
from barnabas.testing.zookeeper_server import ZooKeeperUnavailable

POLL_SECONDS = 0.2
# A broker that dies again and again is not restarted faster than this.
RESTART_PAUSE_SECONDS = 2.0
ONE_MACHINE = (
    "All brokers run on this machine: replicas protect against the loss of a broker, not of the machine."
)


def start(options: argparse.Namespace) -> int:
    # The brokers share a rack, so that replicas go to other machines as soon as the cluster has others.
    overrides = {"broker.rack": socket.gethostname(), **key_values(options.override, "--override")}
    if options.brokers < 1:
        raise ToolError(f"--brokers {options.brokers}: a cluster needs at least one broker.")
    if options.console_port is not None:
        check_installed()
    # A shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    options.data_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        _lock(options.data_dir, ending)
        secure = _secure_files(options) if options.secure else None
        cluster = _cluster(options, overrides) if secure is None else _secured(options, overrides, secure)
        output = ending.enter_context(FollowedOutput(cluster.output_files()))
        try:
            ending.callback(cluster.kill_all)
            _start(cluster)
            _announce(cluster, options.ready_file)
            if secure is not None:
                print(how_to_connect(cluster.bootstrap, secure), flush=True)
            if options.console_port is not None:
                login = None if secure is None else secure.login
                console = ConsoleProcess(cluster.bootstrap, options.console_port, command_config=login)
                ending.enter_context(console)
            _watch(cluster, options.restart)
        except KeyboardInterrupt:
            output.say("stopping the brokers one after the other (Ctrl-C again kills them)")
            cluster.stop()
            output.say("stopped")
    return 0


def _cluster(options: argparse.Namespace, overrides: dict[str, str]) -> LocalCluster:
    directory = options.data_dir.absolute()
    zookeeper = options.zookeeper or ZooKeeper(data_dir=directory / "zookeeper", sync_writes=True)
    return LocalCluster(options.brokers, directory, zookeeper, port=options.port, overrides=overrides)


def _secure_files(options: argparse.Namespace) -> SecureFiles:
    files = SecureFiles(options.data_dir)
    files.make()
    return files


def _secured(options: argparse.Namespace, overrides: dict[str, str], files: SecureFiles) -> LocalCluster:
    """A cluster whose brokers have a listener with TLS and SASL, and another one among themselves."""
    cluster = _cluster(options, {**files.broker_settings(), **overrides})
    for id_ in cluster.broker_ids:
        # The listeners must be named with their ports, so free ones are chosen here.
        port = options.port + id_ - 1 if options.port else free_ports(1)[0]
        cluster.broker_overrides[id_] = listeners(port)
    cluster.config_file = files.secrets
    cluster.client_settings = files.client_settings()
    return cluster


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _lock(data_dir: Path, ending: ExitStack) -> None:
    """Two ZooKeepers with one directory would destroy its data."""
    lock = ending.enter_context((data_dir / ".lock").open("w"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ToolError(f"A cluster with the data directory {data_dir} is running already.") from None


def _start(cluster: LocalCluster) -> None:
    try:
        cluster.start()
    except ZooKeeperUnavailable as error:
        raise ToolError(f"{error}.") from error
    except RuntimeError as error:
        # Its output is on the terminal already.
        raise ToolError(f"The cluster did not start: {str(error).partition(':')[0]}.") from error


def _announce(cluster: LocalCluster, ready_file: Path | None) -> None:
    print(f"{len(cluster.brokers)} brokers are ready: {cluster.bootstrap}")
    print(f"ZooKeeper is at {cluster.zookeeper_connect}, the data is in {cluster.data_dir}.")
    print(ONE_MACHINE, flush=True)
    if ready_file is not None:
        # Rename a complete file, so that nobody who polls for it reads half of it.
        partial = ready_file.with_name(ready_file.name + ".partial")
        partial.write_text(json.dumps(cluster.description(), indent=2) + "\n")
        partial.replace(ready_file)


def _watch(cluster: LocalCluster, is_restarting: bool) -> None:
    """Report processes that die, and start them again with --restart; until Ctrl-C."""
    dead: set[int] = set()
    last_restart: dict[int, float] = {}
    while True:
        for broker in cluster.brokers.values():
            if broker.is_running:
                dead.discard(broker.id)
                continue
            if broker.id not in dead:
                dead.add(broker.id)
                _report(broker, is_restarting)
            now = time.monotonic()
            if is_restarting and now > last_restart.get(broker.id, 0.0) + RESTART_PAUSE_SECONDS:
                last_restart[broker.id] = now
                broker.start()
        time.sleep(POLL_SECONDS)


def _report(broker: BrokerProcess, is_restarting: bool) -> None:
    code = broker.exit_code or 0
    cause = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    next_step = "it is started again" if is_restarting else f"start it with: {shlex.join(broker.command)}"
    print(f"broker {broker.id} has died ({cause}); {next_step}", file=sys.stderr, flush=True)
