"""One consumer that polls, eight threads that work, and offsets that are committed when their records are
done.

    python examples/worker_pool.py localhost:9092 orders billing

Prints a line per record. Ctrl-C or SIGTERM finishes the records in progress, commits and ends. Kill it with
SIGKILL and start it again: no record is skipped; records that were in progress come again. More settings can
follow as key=value."""

import signal
import sys
import time

from barnabas import ConsumerRecord, ConsumerWorkers

WORK_SECONDS = 0.002


def handle(record: ConsumerRecord) -> None:
    """Called by any of the workers; records with the same key come one after the other."""
    time.sleep(WORK_SECONDS)  # instead of real work, such as a call to another service
    sys.stdout.write(f"{record.partition} {record.offset} {record.key!r}\n")
    sys.stdout.flush()


def main(bootstrap: str, topic: str, group: str, *more: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        **dict(each.split("=", 1) for each in more),
    }
    with ConsumerWorkers(handle, settings, workers=8) as workers:
        workers.subscribe([topic])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: workers.stop())
        workers.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
