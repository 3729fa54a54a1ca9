"""Three threads, each with a consumer of its own: the group deals the partitions out among them.

    python examples/consumer_per_thread.py localhost:9092 orders billing

The simplest way to use several threads: each partition is read by one of them, so its order is kept, and
threads share nothing. More threads than partitions have nothing to do. Prints a line per record; Ctrl-C or
SIGTERM ends it. More settings: key=value, at the end."""

import signal
import sys
import threading

from barnabas import Consumer
from barnabas.client.errors import WakeupError

THREADS = 3


class ConsumingThread(threading.Thread):
    """Fetches and works on records until stop() is called, by any thread."""

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
                # After the work: whoever dies in between works on these again, and skips none.
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
