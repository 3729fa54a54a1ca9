"""Producers of four libraries that write numbered records, and remember what was acknowledged."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import confluent_kafka
from aiokafka import AIOKafkaProducer
from tests.clients import kafka_python_library as kafka_python

import barnabas

PATIENCE_SECONDS = 60.0
# So that a paused broker is given up soon, and nothing waits for the libraries' 30 seconds.
REQUEST_TIMEOUT_MS = 5000


class Producing(Protocol):
    def send(self, topic: str, partition: int, value: bytes) -> int:
        """Returns the record's offset when it is acknowledged by all replicas that are in sync."""

    def close(self) -> None: ...


class ConfluentProducing:
    def __init__(self, bootstrap: str) -> None:
        self._library = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 300,
                "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            }
        )

    def send(self, topic: str, partition: int, value: bytes) -> int:
        outcomes: list[Any] = []
        self._library.produce(
            topic, value, partition=partition, on_delivery=lambda *outcome: outcomes.append(outcome)
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not outcomes and time.monotonic() < deadline:
            self._library.poll(0.05)
        error, message = outcomes[0]
        if error is not None:
            raise confluent_kafka.KafkaException(error)
        return int(message.offset())

    def close(self) -> None:
        self._library.flush(5)


class KafkaPythonProducing:
    def __init__(self, bootstrap: str) -> None:
        self._library = kafka_python.KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            acks="all",
            enable_idempotence=True,
            reconnect_backoff_max_ms=300,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=int(PATIENCE_SECONDS * 1000),
        )

    def send(self, topic: str, partition: int, value: bytes) -> int:
        return int(self._library.send(topic, value, partition=partition).get(PATIENCE_SECONDS).offset)

    def close(self) -> None:
        self._library.close(timeout=5)


class AiokafkaProducing:
    def __init__(self, bootstrap: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._library: AIOKafkaProducer = self._run(self._started(bootstrap))

    async def _started(self, bootstrap: str) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        await producer.start()
        return producer

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def send(self, topic: str, partition: int, value: bytes) -> int:
        return int(self._run(self._library.send_and_wait(topic, value, partition=partition)).offset)

    def close(self) -> None:
        try:
            self._run(self._library.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(20)
            self._loop.close()


class OwnProducing:
    def __init__(self, bootstrap: str) -> None:
        self._library = barnabas.Producer(
            bootstrap_servers=bootstrap, request_timeout_ms=REQUEST_TIMEOUT_MS, reconnect_backoff_max_ms=300
        )

    def send(self, topic: str, partition: int, value: bytes) -> int:
        return self._library.send(topic, value=value, partition=partition).result(PATIENCE_SECONDS).offset

    def close(self) -> None:
        self._library.close()


PRODUCING: Mapping[str, Callable[[str], Producing]] = {
    "confluent-kafka": ConfluentProducing,
    "kafka-python": KafkaPythonProducing,
    "aiokafka": AiokafkaProducing,
    "barnabas": OwnProducing,
}


class Writer:
    """A thread that writes "<library> <number>" to the partitions in turn. It sends a record when the one
    before is acknowledged."""

    def __init__(self, library: str, bootstrap: str, topic: str, partitions: int) -> None:
        self.library = library
        self.acknowledged: list[bytes] = []
        self.longest_gap_seconds = 0.0
        self.failure: BaseException | None = None
        self._topic, self._partitions = topic, partitions
        self._producing = PRODUCING[library](bootstrap)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=f"writer {library}", daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:  # raised by stop(), in the test's thread
            self.failure = failure

    def _run(self) -> None:
        number = 0
        before = time.monotonic()
        while not self._stopping.is_set():
            value = f"{self.library} {number}".encode()
            self._producing.send(self._topic, number % self._partitions, value)
            self.acknowledged.append(value)
            now = time.monotonic()
            self.longest_gap_seconds = max(self.longest_gap_seconds, now - before)
            before = now
            number += 1
            # All together use little of a small machine.
            time.sleep(0.005)

    def wait_for(self, count: int) -> None:
        """Return when this many more records are acknowledged."""
        target = len(self.acknowledged) + count
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.acknowledged) < target:
            if self.failure is not None:
                raise AssertionError(f"{self.library} cannot write: {self.failure!r}") from self.failure
            assert time.monotonic() < deadline, f"{self.library} has stopped at {len(self.acknowledged)}"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)
        try:
            assert not self._thread.is_alive(), f"{self.library} does not stop"
            if self.failure is not None:
                raise AssertionError(f"{self.library} cannot write: {self.failure!r}") from self.failure
        finally:
            self._producing.close()


class Writers:
    """One writer for each library, for a `with` block; its end raises the failures of all."""

    def __init__(self, bootstrap: str, topic: str, partitions: int = 1) -> None:
        self.all = [Writer(library, bootstrap, topic, partitions) for library in PRODUCING]

    def __enter__(self) -> "Writers":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        failures = []
        for writer in self.all:
            try:
                writer.stop()
            except AssertionError as failure:
                failures.append(failure)
        if failures and error is None:
            raise failures[0]

    def wait_for(self, count: int) -> None:
        """Return when each has written this many more records."""
        for writer in self.all:
            writer.wait_for(count)

    @property
    def acknowledged(self) -> list[bytes]:
        return [value for writer in self.all for value in writer.acknowledged]
