"""`barnabas server-stop`: stops brokers of this machine cleanly, as kafka-server-stop does.

A broker holds a lock on a file in each of its data directories while it runs, so its process is found by its
open files, and the directory says which node it is. No other process gets a signal."""

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.failures import ToolError
from barnabas.log import names
from barnabas.log.checkpoints import read_meta_properties
from barnabas.log.disk import RealDisk

DESCRIPTION = """\
Stop the brokers that run on this machine and that this user may stop: SIGTERM, which lets them hand over
their partitions and close their logs. As with Kafka's tool these are all of them, unless --node-id or
--data-dir chooses; brokers in containers are left to those who started them."""
EXAMPLES = """\
  barnabas server-stop                       all brokers of this machine
  barnabas server-stop --node-id 2           the broker with this node.id
  barnabas server-stop --data-dir ./data     the broker with this data
"""

PROC = Path("/proc")


class RunningBroker(NamedTuple):
    process_id: int
    node_id: int
    directories: tuple[Path, ...]

    def __str__(self) -> str:
        places = ", ".join(map(str, self.directories))
        return f"broker {self.node_id} (process {self.process_id}, data in {places})"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node-id", type=int, metavar="N", help="the broker with this node.id")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="the broker with this data directory")
    parser.add_argument("--all", action="store_true", help="all brokers, as without options")
    parser.add_argument(
        "--process-role",
        choices=("broker", "controller"),
        help="broker: all brokers; controller: none, since every controller is a broker, too",
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait for the end (60)"
    )


def run(options: argparse.Namespace) -> int:
    number = _signal_number(os.environ.get("SIGNAL", "TERM"))
    if options.process_role == "controller" and options.node_id is None:
        raise ToolError(
            "No process is only a controller: one of the brokers is. Choose it with --node-id, "
            "or leave out --process-role to stop all brokers."
        )
    stopping = [
        (broker, handle)
        for broker in running_brokers()
        if _is_chosen(broker, options) and (handle := _handle_of(broker)) is not None
    ]
    if not stopping:
        print("No kafka server to stop", file=sys.stderr)
        return 1
    for _, handle in stopping:
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            # It has ended just now.
            continue
    give_up = time.monotonic() + options.timeout
    return max(_await_end(broker, handle, give_up) for broker, handle in stopping)


def _signal_number(name: str) -> signal.Signals:
    """The environment variable SIGNAL, as in Kafka's tool."""
    try:
        return (
            signal.Signals(int(name))
            if name.isdecimal()
            else signal.Signals[f"SIG{name.removeprefix('SIG')}"]
        )
    except (KeyError, ValueError):
        raise ToolError(
            f"SIGNAL={name} is not the name of a signal: leave it out, or set it to TERM."
        ) from None


def _is_chosen(broker: RunningBroker, options: argparse.Namespace) -> bool:
    if options.node_id is not None and broker.node_id != options.node_id:
        return False
    return options.data_dir is None or options.data_dir.resolve() in broker.directories


def _handle_of(broker: RunningBroker) -> int | None:
    """A descriptor of the process. If the process has ended, and another one has its number, this is None:
    what is checked after opening it holds for as long as it is open."""
    try:
        handle = os.pidfd_open(broker.process_id)
    except ProcessLookupError:
        return None
    return handle if _directories(PROC / str(broker.process_id)) == broker.directories else None


def _await_end(broker: RunningBroker, handle: int, give_up: float) -> int:
    ready, _, _ = select.select([handle], [], [], max(0.0, give_up - time.monotonic()))
    if not ready:
        print(f"Error: {broker} has not ended yet; its log says what it waits for.", file=sys.stderr)
        return 1
    print(f"Stopped {broker}.")
    return 0


def running_brokers() -> list[RunningBroker]:
    """The brokers of this machine that were started by `barnabas start` and whose files we may see."""
    found: list[RunningBroker] = []
    for process in PROC.iterdir():
        if process.name.isdecimal() and _is_start(process) and _is_near(process):
            directories = _directories(process)
            if directories:
                found.append(RunningBroker(int(process.name), _node_id(directories[0]), directories))
    return sorted(found)


def _is_start(process: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    # `run-class kafka.Kafka` is a start, too.
    return bool({"start", "kafka.Kafka"} & set(words)) and any(
        Path(word).name in ("barnabas", "barnabas.cli.main", "main.py") for word in words
    )


def _is_near(process: Path) -> bool:
    """Whether the process is not in a container of its own."""
    try:
        return (process / "ns/pid").readlink() == (PROC / "self/ns/pid").readlink()
    except OSError:
        return False


def _directories(process: Path) -> tuple[Path, ...]:
    return tuple(sorted(set(_locked(process))))


def _locked(process: Path) -> Iterator[Path]:
    try:
        for descriptor in (process / "fd").iterdir():
            target = descriptor.readlink()
            if target.name == names.LOCK and (target.parent / names.META_PROPERTIES).exists():
                yield target.parent
    except OSError:
        # The process has ended, or belongs to another user.
        return


def _node_id(directory: Path) -> int:
    meta = read_meta_properties(RealDisk(), directory)
    return -1 if meta is None else meta.node_id
