"""A job that copies a topic record by record, exactly once: consume, transform, produce, offsets in the
transaction. As a process of its own it may be killed at any moment:

    python -m tests.clients.copy_job BOOTSTRAP SOURCE TARGET GROUP NUMBER
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 30.0


def transformed(value: bytes) -> bytes:
    return b"copy of " + value


class CopyJob:
    def __init__(self, bootstrap: str, source: str, target: str, group: str, number: str) -> None:
        self.target = target
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.instance.id": f"job {number}",  # so that it gets its partitions back at once
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
                "reconnect.backoff.max.ms": 200,
                "fetch.wait.max.ms": 50,
            }
        )
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"{group}-{number}",
                "transaction.timeout.ms": 10_000,
                # librdkafka bootstraps again when its only broker is away for a while, keeps the broker it
                # discarded as the group's coordinator, and then send_offsets_to_transaction never returns.
                "metadata.recovery.strategy": "none",
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.producer.init_transactions(PATIENCE_SECONDS)
        self.consumer.subscribe([source])

    def run(self) -> None:
        """Run until it is killed or the library gives up; then it is started again."""
        while True:
            records = [each for each in self.consumer.consume(20, 0.05) if each.error() is None]
            if not records:
                continue
            try:
                self.copy(records)
            except KafkaException as raised:
                if not raised.args[0].txn_requires_abort():
                    raise
                self.producer.abort_transaction(PATIENCE_SECONDS)
                self.rewind()

    def copy(self, records: Iterable[Message]) -> None:
        self.producer.begin_transaction()
        offsets: dict[tuple[str, int], int] = {}
        for record in records:
            value = transformed(record.value() or b"")
            self.producer.produce(self.target, value, partition=record.partition())
            offsets[record.topic(), record.partition()] = record.offset() + 1
        positions = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        metadata = self.consumer.consumer_group_metadata()
        self.producer.send_offsets_to_transaction(positions, metadata, PATIENCE_SECONDS)
        self.producer.commit_transaction(PATIENCE_SECONDS)

    def rewind(self) -> None:
        for place in self.consumer.committed(self.consumer.assignment(), timeout=PATIENCE_SECONDS):
            self.consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


class CopyJobProcess:
    """A process that is started again whenever it has ended."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._output = directory / f"job-{arguments[-1]}.log"
        self._arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    def keep_running(self) -> None:
        if self.process is not None and self.process.poll() is None:
            return
        command = [sys.executable, "-W", "ignore", "-m", "tests.clients.copy_job", *self._arguments]
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def log_tail(self) -> str:
        return self._output.read_text(errors="replace")[-3000:] if self._output.exists() else ""


if __name__ == "__main__":
    CopyJob(*sys.argv[1:]).run()
