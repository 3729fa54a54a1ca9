"""`python -m tests.bench`: measure one broker, or two beside each other, and print the table."""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from tests.bench.client_rows import client_rows
from tests.bench.peers import PEERS, Peer
from tests.bench.report import print_table, progress
from tests.bench.rows import FULL, WARMING, Bench, Figure, Row, Size, start_rows
from tests.bench.rows import ROWS as BROKER_ROWS
from tests.java.jvm import JavaMissing, class_path

SHARED_MEMORY = Path("/dev/shm")
ROWS: dict[str, Row] = {**BROKER_ROWS, "clients": client_rows}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--peer",
        action="append",
        choices=sorted(PEERS),
        help="what to measure; may be given twice to see both side by side (default: barnabas)",
    )
    parser.add_argument("--full", action="store_true", help="longer runs, 1 GB compacted, 10 GB in and out")
    parser.add_argument(
        "--row", action="append", choices=sorted(ROWS), help="only these rows; may be repeated"
    )
    parser.add_argument(
        "--data-dir", type=Path, help="where the data goes (default: shared memory, else the temp directory)"
    )
    return parser.parse_args()


def data_directory(wanted: Path | None) -> Path:
    if wanted is None and SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK):
        wanted = SHARED_MEMORY
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=wanted))


def measure(peer: Peer, size: Size, rows: list[str], console: Console) -> list[Figure]:
    bench = Bench(peer, size, lambda part: None)
    try:
        _measure_row(bench, "start", start_rows, console)
        if peer.warms_up:
            _warm_up(bench, console)
        for name in rows:
            _measure_row(bench, name, ROWS[name], console)
    finally:
        peer.stop()
    return bench.figures


def _measure_row(bench: Bench, name: str, row: Row, console: Console) -> None:
    """A row that fails says so in the table and does not cost the others."""
    with progress(console, f"{bench.peer.name}: {name}") as bench.tick:
        try:
            bench.figures.extend(row(bench))
        except (OSError, RuntimeError) as failure:
            bench.figures.append(Figure(name, "failed", (repr(failure),)))


def _warm_up(bench: Bench, console: Console) -> None:
    """A virtual machine compiles what it sees often: a whole round whose figures are thrown away."""
    for name in WARMING:
        with progress(console, f"{bench.peer.name}: warming up, {name}") as bench.tick:
            for _ in ROWS[name](bench):
                pass


def main() -> None:
    options = arguments()
    peers = options.peer or ["barnabas"]
    if "kafka" in peers:
        try:
            class_path()
        except JavaMissing as reason:
            sys.exit(str(reason))
    console = Console()
    directory = data_directory(options.data_dir)
    figures: dict[str, list[Figure]] = {}
    try:
        for name in peers:
            peer = PEERS[name](directory / name)
            rows = options.row or list(ROWS)
            figures[name] = measure(peer, FULL if options.full else Size(), rows, console)
    finally:
        shutil.rmtree(directory)
    print_table(console, peers, figures)
    console.print("Figures move by a third from run to run on a shared machine: compare within one run.")


if __name__ == "__main__":
    main()
