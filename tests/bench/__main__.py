"""`python -m tests.bench`: measure our broker, alone or beside Apache Kafka; see docs/performance.md."""

import argparse
import dataclasses
import datetime
import sys
from pathlib import Path

from rich.console import Console
from tests.bench.client_rows import CLIENT_ROWS
from tests.bench.cluster_rows import CLUSTER_ROWS
from tests.bench.driver import raise_file_limit
from tests.bench.goals import KAFKA, OURS
from tests.bench.growth_rows import GROWTH_ROWS
from tests.bench.machine import machine, versions
from tests.bench.pictures import draw
from tests.bench.report import print_run, progress
from tests.bench.results import FOLDER, RowResult, Run
from tests.bench.rows import BROKER_ROWS, Row
from tests.bench.runner import run_row
from tests.bench.stage import FULL, TINY, Size, Stage, changed_size
from tests.bench.tls_rows import TLS_ROWS
from tests.java.jvm import JavaMissing, class_path

ROWS = {row.name: row for row in (*BROKER_ROWS, *CLIENT_ROWS, *GROWTH_ROWS, *CLUSTER_ROWS, *TLS_ROWS)}
USUAL = (*BROKER_ROWS, *CLIENT_ROWS)


def chosen_rows(text: str) -> list[Row]:
    """Names of rows and groups, separated by commas, in the order of the table."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    groups = {row.group for row in ROWS.values()}
    for name in names:
        if name not in ROWS and name not in groups:
            known = f"rows {', '.join(ROWS)}; groups {', '.join(sorted(groups))}"
            raise argparse.ArgumentTypeError(f"there is no row {name}; {known}")
    return [row for row in ROWS.values() if row.name in names or row.group in names]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--peer", choices=[KAFKA], help="measure it too, in turns with ours")
    parser.add_argument(
        "--rows", type=chosen_rows, default=list(USUAL), help="rows or groups, with commas between them"
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--full", dest="size", action="store_const", const=FULL, help="more of everything")
    sizes.add_argument("--tiny", dest="size", action="store_const", const=TINY, help="to see that it works")
    parser.set_defaults(size=Size())
    parser.add_argument(
        "--data-dir", type=Path, help="where the data of the CPU rows goes (default: shared memory)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a size, as in partitions_on_disk=4000",
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="where JSON and pictures go")
    return parser.parse_args()


def measure(stage: Stage, rows: list[Row], console: Console) -> list[RowResult]:
    row_results = []
    with progress(console, len(rows)) as (notify, done):
        for row in rows:
            row_results.append(run_row(row, stage, notify))
            failures = [result.failure for result in row_results[-1].results if result.failure]
            done(f"{row.name}: {'; '.join(failures) if failures else 'done'}")
    return row_results


def main() -> None:
    options = arguments()
    if options.peer == KAFKA:
        try:
            class_path()
        except JavaMissing as reason:
            sys.exit(str(reason))
    try:
        size = changed_size(options.size, options.set)
    except ValueError as reason:
        sys.exit(str(reason))
    console = Console()
    raise_file_limit()
    names = [OURS, *([options.peer] if options.peer else [])]
    date = datetime.datetime.now().isoformat(timespec="seconds")
    about = machine()
    settings = {"peers": names, **dataclasses.asdict(size)}
    with Stage.open(names, size, options.data_dir) as stage:
        rows = measure(stage, options.rows, console)
    run = Run(date, about, versions(with_kafka=options.peer == KAFKA), settings, rows)
    print_run(console, run)
    path = run.save(options.out)
    console.print("Figures move by a third from run to run on a shared machine: compare within one run.")
    console.print("Written:", path, *draw(run, path))


if __name__ == "__main__":
    main()
