"""`python -m tests.bench.upserts`: an upsert of a million rows into a table of ten million, on local[2] or on
a standalone cluster (--master), with a driver of 512 MB.

Half of the keys are in the table, spread over all its files; the others are new. Prints the time, and the
most memory of each kind of process: the driver (Python and Java) and the Python processes of tasks."""

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow
import pyarrow.compute as compute

from barnabas.spark.session import session_of
from barnabas.spark.tables.files import write_files
from barnabas.spark.tables.fitting import fitting_of
from barnabas.spark.tables.store import append, store_of
from barnabas.spark.tables.target import Mark, TableTarget
from barnabas.spark.tables.upserting import Upsert
from barnabas.spark.tables.writing import upsert

DRIVER_MEMORY = "512m"
FILE_ROWS = 500_000
MEGABYTE = 1 << 20
LOOK_SECONDS = 0.5


def fill(target: TableTarget, rows: int) -> None:
    """Keys are spread over all files, so that bounds rule out no file."""
    store = store_of(target)
    files_count = max(1, rows // FILE_ROWS)
    written = []
    for number in range(files_count):
        ids = pyarrow.array(range(number, rows, files_count), pyarrow.int64())
        table = pyarrow.table({"id": ids, "name": compute.cast(ids, pyarrow.string()), "amount": ids})
        fitting = fitting_of(store.schema(), table.schema, evolve=True)
        store.prepare(fitting)
        writer = Upsert(store, target, fitting, Mark("fill", 0)).writers()()
        written += write_files(writer, [fitting.fit(table)])
    append(store, written, Mark("fill", 0))


class Memory(threading.Thread):
    """Looks again and again how much memory the processes below this one have."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: dict[str, int] = {}

    def run(self) -> None:
        while True:
            for pid in [os.getpid(), *_below(os.getpid())]:
                kind, size = _kind(pid), _resident(pid)
                self.most[kind] = max(self.most.get(kind, 0), size)
            time.sleep(LOOK_SECONDS)


def _below(pid: int) -> list[int]:
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [process for child in children for process in (child, *_below(child))]


def _kind(pid: int) -> str:
    if pid == os.getpid():
        return "driver, Python"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "ended"
    return "driver, Java (with the tasks if local)" if "SparkSubmit" in command else "a task, Python"


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=1_000_000)
    parser.add_argument("--format", choices=("delta", "iceberg"), default="delta")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, help="a directory that all workers have")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        target = TableTarget(f"{folder}/table", format=options.format, mode="upsert", key=("id",))
        start = time.monotonic()
        # In a process of its own, since it needs more memory than an upsert.
        filling = multiprocessing.get_context("spawn").Process(target=fill, args=(target, options.rows))
        filling.start()
        filling.join()
        print(f"{options.rows:,} rows written in {time.monotonic() - start:.1f} s", flush=True)
        settings = {"spark.driver.memory": DRIVER_MEMORY, "spark.driver.host": "127.0.0.1"}
        spark = session_of("upserts", options.master, None, settings)
        memory = Memory()
        memory.start()
        step = max(1, 2 * options.rows // options.batch)
        batch = spark.range(0, options.batch * step, step).selectExpr(
            "id", "concat('new ', id) AS name", "id + 1 AS amount"
        )
        start = time.monotonic()
        upsert(batch, target, Mark("bench", 0))
        print(f"{options.batch:,} rows upserted in {time.monotonic() - start:.1f} s", flush=True)
        most = dict(memory.most)
        spark.stop()
        names = pyarrow.table(store_of(target).read().select(["name"])).column("name")
        changed = compute.sum(compute.starts_with(names, "new ")).as_py()
        print(f"the table has {len(names):,} rows, {changed:,} of them from the batch")
        for kind, size in sorted(most.items()):
            print(f"{kind}: at most {size // MEGABYTE} MB")
        expected = options.rows + options.batch // 2
        return 0 if (len(names), changed) == (expected, options.batch) else 1


if __name__ == "__main__":
    sys.exit(main())
