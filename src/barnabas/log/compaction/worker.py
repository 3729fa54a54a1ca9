"""The worker process: reads jobs as lines of JSON from stdin and writes their results to stdout, until stdin
ends.

It is a process because a thread of the broker would hold the interpreter lock for milliseconds at a time, and
each produce request would wait for it. It runs at low priority, and it ends at once when the broker does: it
must not write any more when a new broker starts."""

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
    """Errors become results: the process goes on with the next job."""
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
    # The broker is gone or needs no more jobs. It, or its successor, repeats what was not finished.
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
