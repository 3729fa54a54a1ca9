"""Transactional producers, one interface over the three libraries."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

import confluent_kafka
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import KafkaError as AioError
from aiokafka.errors import ProducerFenced as AioFenced
from tests.clients import kafka_python_library as kafka_python
from tests.clients.consumers import Place

T = TypeVar("T")
INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED = 47, 49, 90
INVALID_TXN_STATE = 48
FENCED_CODES = (
    INVALID_PRODUCER_EPOCH,
    PRODUCER_FENCED,
    confluent_kafka.KafkaError._FENCED,
    confluent_kafka.KafkaError._FATAL,
)


class Fenced(Exception):
    """Another producer has this one's transactional id, or the coordinator ended its transaction."""


class Refused(Exception):
    """The library cannot continue the transaction, for another reason."""


class Transactional(Protocol):
    """Calls init_transactions when it is created. Raises Fenced or Refused."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        """Returns when the record is acknowledged."""

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class ConfluentTransactional:
    name = "confluent-kafka"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.library = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 300,
            }
        )
        self._bootstrap = bootstrap
        self._do(lambda: self.library.init_transactions(30))

    def _do(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except confluent_kafka.KafkaException as raised:
            raise _error_of(raised.args[0].code(), str(raised)) from raised

    def begin(self) -> None:
        self._do(self.library.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        outcomes: list[confluent_kafka.KafkaError | None] = []

        def act() -> None:
            self.library.produce(
                topic, value, partition=partition, on_delivery=lambda error, _: outcomes.append(error)
            )
            deadline = time.monotonic() + 30
            # Not flush(): if the producer is fenced meanwhile, it gives no result and no error.
            while not outcomes and time.monotonic() < deadline:
                self.library.poll(0.05)

        self._do(act)
        if not outcomes:
            raise Refused("not delivered")
        if outcomes[0] is not None:
            raise _error_of(outcomes[0].code(), outcomes[0].str())

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        positions = [
            confluent_kafka.TopicPartition(topic, number, offset)
            for (topic, number), offset in offsets.items()
        ]
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        metadata = consumer.consumer_group_metadata()
        self._do(lambda: self.library.send_offsets_to_transaction(positions, metadata, 30))
        consumer.close()

    def commit(self) -> None:
        self._do(lambda: self.library.commit_transaction(30))

    def abort(self) -> None:
        self._do(lambda: self.library.abort_transaction(30))

    def close(self) -> None:
        """Nothing to do: the library closes when the object is deleted."""


def _error_of(code: int, text: str) -> Exception:
    return Fenced(text) if code in FENCED_CODES else Refused(f"{code} {text}")


class KafkaPythonTransactional:
    name = "kafka-python"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.library = kafka_python.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=300,
        )
        self._do(self.library.init_transactions)

    def _do(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except kafka_python.ProducerFencedError as raised:
            raise Fenced(str(raised)) from raised
        except kafka_python.BrokerResponseError as raised:
            raise _error_of(raised.errno, repr(raised)) from raised
        except kafka_python.KafkaError as raised:
            raise Refused(repr(raised)) from raised

    def begin(self) -> None:
        self._do(self.library.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._do(lambda: self.library.send(topic, value, partition=partition).get(30))

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        commits = {
            kafka_python.TopicPartition(*place): kafka_python.OffsetAndMetadata(offset, "", -1)
            for place, offset in offsets.items()
        }
        self._do(lambda: self.library.send_offsets_to_transaction(commits, group))

    def commit(self) -> None:
        self._do(self.library.commit_transaction)

    def abort(self) -> None:
        self._do(self.library.abort_transaction)

    def close(self) -> None:
        self.library.close(timeout=2)


class AiokafkaTransactional:
    name = "aiokafka"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.library: AIOKafkaProducer = self._run(self._started(bootstrap, transactional_id, timeout_ms))

    async def _started(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await producer.start()
        return producer

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
        except AioFenced as raised:
            raise Fenced(str(raised)) from raised
        except AioError as raised:
            raise _error_of(getattr(raised, "errno", -1), repr(raised)) from raised

    def begin(self) -> None:
        self._run(self.library.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._run(self.library.send_and_wait(topic, value, partition=partition))

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        commits = {AioPartition(*place): offset for place, offset in offsets.items()}
        self._run(self.library.send_offsets_to_transaction(commits, group))

    def commit(self) -> None:
        self._run(self.library.commit_transaction())

    def abort(self) -> None:
        self._run(self.library.abort_transaction())

    def close(self) -> None:
        try:
            self._run(self.library.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(20)
            self._loop.close()


TRANSACTIONAL: dict[str, Callable[..., Transactional]] = {
    each.name: each for each in (ConfluentTransactional, KafkaPythonTransactional, AiokafkaTransactional)
}
