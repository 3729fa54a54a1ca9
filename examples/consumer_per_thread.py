"""Three threads, each with its own consumer: the group divides the partitions among them.

    python examples/consumer_per_thread.py localhost:9092 orders billing

This is the simplest way to use several threads: each partition is read by one thread, so its order is kept,
and threads share nothing. If there are more threads than partitions, some have nothing to do. Prints a line
per record; Ctrl-C or SIGTERM ends it. More settings can follow as key=value."""

import signal
import sys
import threading

from barnabas import Consumer, WakeupError

THREADS = 3


class ConsumingThread(threading.Thread):
    """Fetches and handles records until any thread calls stop()."""

    def __init__(self, settings: dict[str, str], topic: str) -> None:
        super().__init__()
        self._consumer = Consumer(settings)
        self._topic = topic
        self._is_stopping = False

    def run(self) -> None:
        with self._consumer as consumer:
            consumer.subscribe([self._topic])
            while not self._is_stopping:
                try:
                    records = consumer.poll(1.0)
                except WakeupError:
                    continue
                for record in records:
                    sys.stdout.write(f"{record.partition} {record.offset} {self.name}\n")
                sys.stdout.flush()
                # Commit after the work: after a crash these records are handled again, and none is skipped.
                consumer.commit_async()

    def stop(self) -> None:
        self._is_stopping = True
        self._consumer.wakeup()


def main(bootstrap: str, topic: str, group: str, *more: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        **dict(each.split("=", 1) for each in more),
    }
    threads = [ConsumingThread(settings, topic) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    is_over.wait()
    for thread in threads:
        thread.stop()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
