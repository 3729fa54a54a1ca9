"""A driver that runs a pipeline and kills itself (SIGKILL) between two sinks of its second batch: python -m
tests.spark.dying_pipeline FILE SINKS-BEFORE. Tables that are written by one job count as one sink; with the
word `tables` at the end it counts these, and kills itself between their commits."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.shared import SharedWrite
from barnabas.spark.session import session_of
from barnabas.spark.tables import appending
from barnabas.spark.tables.files import DataFile
from barnabas.spark.tables.store import Store
from barnabas.spark.tables.target import Mark


def main(file: str, before: str, what: str = "sinks") -> None:
    if what == "sinks":
        die_between_sinks(int(before))
    else:
        die_between_tables(int(before))
    path = Path(file)
    run(session_of("dying", "local[2]"), load(path), path.parent, once=True, watch=lambda progress: None)


def die_between_sinks(before: int) -> None:
    batches: list[int] = []

    def one_by_one(self: SharedWrite, spark: SparkSession, writes: list[Callable[[], None]]) -> None:
        for number, write in enumerate(writes):
            if batches and number == before:
                os.kill(os.getpid(), signal.SIGKILL)
            write()
        batches.append(len(writes))

    SharedWrite._side_by_side = one_by_one  # type: ignore[method-assign]


def die_between_tables(before: int) -> None:
    original, done = appending.append, 0

    def append(store: Store, files: Sequence[DataFile], mark: Mark) -> None:
        nonlocal done
        if mark.batch == 1:
            if done == before:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
        original(store, files, mark)

    appending.append = append


if __name__ == "__main__":
    main(*sys.argv[1:])
