"""The cleaner's own process: a job as a line of JSON on stdin, its result as one on stdout, until stdin ends.

A thread of the broker would hold the interpreter lock for milliseconds at a time, and each produce would wait
for it. The process is nice to others, and it ends at once when the broker does: one that a new broker starts
must not find it still writing."""

import os
import queue
import sys
import threading
import traceback
from typing import TextIO

from barnabas.log.compaction.job import CleaningJob, CleaningResult
from barnabas.log.compaction.rewriting import clean
from barnabas.log.disk import Disk, RealDisk

NICENESS = 19


def run_job(line: str, disk: Disk) -> CleaningResult:
    """Whatever goes wrong is the answer: the process itself is not at fault."""
    try:
        return clean(CleaningJob.from_json(line), disk)
    except (OSError, MemoryError) as problem:
        return CleaningResult(error=f"{type(problem).__name__}: {problem}")
    except Exception as problem:
        traceback.print_exc()
        return CleaningResult(error=f"{type(problem).__name__}: {problem}", data_fault=True)


def _read_jobs(source: TextIO, jobs: queue.SimpleQueue[str]) -> None:
    for line in source:
        jobs.put(line)
    # The broker is gone or wants no more; whatever is half done it, or its successor, will do again.
    os._exit(0)


def main() -> None:
    os.nice(NICENESS)
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(sys.stdin, jobs), daemon=True).start()
    disk = RealDisk()
    while True:
        result = run_job(jobs.get(), disk)
        sys.stdout.write(result.to_json() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
