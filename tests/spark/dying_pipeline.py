"""A driver that runs a pipeline and kills itself (SIGKILL) between two sinks of its second batch: python -m
tests.spark.dying_pipeline FILE SINKS-BEFORE"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.shared import SharedWrite
from barnabas.spark.session import session_of


def main(file: str, before: str) -> None:
    batches: list[int] = []

    def one_by_one(self: SharedWrite, spark: SparkSession, writes: list[Callable[[], None]]) -> None:
        for number, write in enumerate(writes):
            if batches and number == int(before):
                os.kill(os.getpid(), signal.SIGKILL)
            write()
        batches.append(len(writes))

    SharedWrite._side_by_side = one_by_one  # type: ignore[method-assign]
    path = Path(file)
    run(session_of("dying", "local[2]"), load(path), path.parent, once=True, watch=lambda progress: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
