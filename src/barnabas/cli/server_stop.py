"""`barnabas server-stop`: stops brokers of this machine cleanly, as kafka-server-stop does.

A broker holds a lock on a file in each of its data directories while it runs, so its process is found by its
open files, and the directory says which node it is."""

import argparse
import os
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
Stop brokers that run on this machine: SIGTERM, which lets them hand over their partitions and close their
logs. With several brokers, choose with --node-id or --data-dir, or stop all with --all."""
EXAMPLES = """\
  barnabas server-stop                       the only broker of this machine
  barnabas server-stop --data-dir ./data     the broker with this data
  barnabas server-stop --all
"""

PROC = Path("/proc")
POLL_SECONDS = 0.05


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
    parser.add_argument("--all", action="store_true", help="all brokers")
    parser.add_argument("--process-role", choices=("broker", "controller"), help="accepted, as in Kafka")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait for the end (60)"
    )


def run(options: argparse.Namespace) -> int:
    chosen = [broker for broker in running_brokers() if _is_chosen(broker, options)]
    if not chosen:
        print("No kafka server to stop", file=sys.stderr)
        return 1
    if len(chosen) > 1 and not options.all:
        named = "; ".join(map(str, chosen))
        raise ToolError(f"Several brokers run here: {named}. Choose one with --data-dir, or all with --all.")
    for broker in chosen:
        os.kill(broker.process_id, signal.SIGTERM)
    give_up = time.monotonic() + options.timeout
    return max(_await_end(broker, give_up) for broker in chosen)


def _is_chosen(broker: RunningBroker, options: argparse.Namespace) -> bool:
    if options.node_id is not None and broker.node_id != options.node_id:
        return False
    return options.data_dir is None or options.data_dir.resolve() in broker.directories


def _await_end(broker: RunningBroker, give_up: float) -> int:
    while _directories(PROC / str(broker.process_id)):
        if time.monotonic() >= give_up:
            print(f"Error: {broker} has not ended yet; its log says what it waits for.", file=sys.stderr)
            return 1
        time.sleep(POLL_SECONDS)
    print(f"Stopped {broker}.")
    return 0


def running_brokers() -> list[RunningBroker]:
    """The brokers of this machine that were started by `barnabas start` and whose files we may see."""
    found: list[RunningBroker] = []
    for process in PROC.iterdir():
        if process.name.isdecimal() and _is_start(process):
            directories = _directories(process)
            if directories:
                found.append(RunningBroker(int(process.name), _node_id(directories[0]), directories))
    return sorted(found)


def _is_start(process: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return "start" in words and any(
        Path(word).name in ("barnabas", "barnabas.cli.main", "main.py") for word in words
    )


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
