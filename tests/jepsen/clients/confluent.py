"""confluent-kafka, the Python binding of librdkafka."""

from __future__ import annotations

import contextlib
import gc
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, KafkaException
from tests.jepsen.clients import base
from tests.jepsen.clients.base import FAIL, OK, UNKNOWN, Group, OperationError, Record, Sent

from barnabas.ids import TopicPartition

PATIENCE_SECONDS = base.DELIVERY_TIMEOUT_MS / 1000 + 20
CLOSE_SECONDS_MAX = 10.0
SERVE_SECONDS = 0.05
# After the first record of a poll, further ones are taken only if they are there already.
NO_WAIT = 0.0


def _block_seconds() -> float:
    return base.BLOCK_MS / 1000


def _common(bootstrap: str, client_id: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "socket.timeout.ms": base.REQUEST_TIMEOUT_MS,
        "reconnect.backoff.max.ms": base.BACKOFF_MS_MAX,
        "retry.backoff.max.ms": base.BACKOFF_MS_MAX,
        "log_level": 0,
        "error_cb": _ignore,
        "logger": None,
    }


def _ignore(error: confluent_kafka.KafkaError) -> None:
    """The library tells here of broken connections, too; what matters is raised by a method."""


def _producer_settings(bootstrap: str, client_id: str) -> dict[str, Any]:
    return {
        **_common(bootstrap, client_id),
        "acks": "all",
        "enable.idempotence": True,
        "request.timeout.ms": base.REQUEST_TIMEOUT_MS,
        "delivery.timeout.ms": base.DELIVERY_TIMEOUT_MS,
        "linger.ms": 0,
    }


@contextlib.contextmanager
def _outcome(outcome: str, *, breaks: bool = False) -> Iterator[None]:
    """What an error inside means. With `breaks`, only an error after which the library asks for an abort
    leaves a usable client."""
    try:
        yield
    except KafkaException as raised:
        error = raised.args[0]
        is_broken = error.fatal() or (breaks and not error.txn_requires_abort())
        raise OperationError(outcome, f"{error.name()}: {error.str()}", is_broken=is_broken) from raised
    except RuntimeError as raised:  # a consumer that is closed
        raise OperationError(outcome, raised, is_broken=True) from raised


def _in_time(outcome: str, call: Callable[[], Any]) -> Any:
    """For calls that do not keep a time limit of their own: a commit of offsets has none, and sending offsets
    to a transaction ignores it when the coordinator is gone (librdkafka's issues 5456 and 5511). A client
    that hangs cannot be used any more."""
    result: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            result.put((call(), None))
        except Exception as error:
            result.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = result.get(timeout=_block_seconds())
    except queue.Empty:
        raise OperationError(outcome, "no answer", is_broken=True) from None
    if error is not None:
        raise error
    return value


def _destroy_elsewhere(client: list[Any]) -> None:
    """Destroy a client that was given up, in a thread that nobody waits for: the library waits for threads of
    its own, and after brokers were away perhaps for ever (librdkafka's issues 3954 and 4674)."""

    def run() -> None:
        client.clear()
        # Delivery callbacks refer to the client in circles.
        gc.collect()

    threading.Thread(target=run, daemon=True).start()


def _made(kind: Any, settings: Mapping[str, Any]) -> Any:
    return kind({key: value for key, value in settings.items() if value is not None})


def _acknowledged(offset: int | None) -> Sent:
    """Without an offset, nobody has acknowledged the record: librdkafka has concluded from the answer to a
    later batch that this one was taken, too. A leader that does not know the producer takes any sequence, as
    in Kafka (KIP-360), so this may be wrong. docs/durability.md tells it."""
    if offset is None or offset < 0:
        return Sent(UNKNOWN, None, "no offset")
    return Sent(OK, offset)


class ConfluentWriter(base.Writer):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._producer = _made(confluent_kafka.Producer, settings)

    def send(self, records: Sequence[Record]) -> list[Sent]:
        sent: list[Sent | None] = [None] * len(records)
        for place, (partition, value) in enumerate(records):
            self._begin(sent, place, partition, value)
        deadline = time.monotonic() + PATIENCE_SECONDS
        with contextlib.suppress(KafkaException):  # a fatal error: there will be no more reports
            while None in sent and time.monotonic() < deadline:
                self._producer.poll(SERVE_SECONDS)
        return [Sent(UNKNOWN, None, "no delivery report") if each is None else each for each in sent]

    def _begin(self, sent: list[Sent | None], place: int, partition: TopicPartition, value: int) -> None:
        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None:
                sent[place] = Sent(UNKNOWN, None, f"{error.name()}: {error.str()}")
            else:
                sent[place] = _acknowledged(message.offset())

        topic, number = partition
        try:
            self._producer.produce(topic, base.encode(value), partition=number, on_delivery=delivered)
        except (KafkaException, BufferError) as error:
            # Refused at once: the record is not in the producer's queue.
            sent[place] = Sent(FAIL, None, repr(error))

    def close(self) -> None:
        self._producer.flush(CLOSE_SECONDS_MAX)
        self._destroy()

    def abandon(self) -> None:
        with contextlib.suppress(KafkaException):
            self._producer.purge(blocking=False)
        producer = [self._producer]
        del self._producer
        _destroy_elsewhere(producer)

    def _destroy(self) -> None:
        # The library ends when its last reference is gone; delivery callbacks refer to it in circles.
        del self._producer
        gc.collect()


class ConfluentTransactionalWriter(ConfluentWriter, base.TransactionalWriter):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        try:
            with _outcome(FAIL):
                self._producer.init_transactions(_block_seconds())
        except OperationError:
            self.abandon()
            raise

    def begin(self) -> None:
        with _outcome(FAIL, breaks=True):
            self._producer.begin_transaction()

    def send_offsets(self, reader: base.Reader, offsets: Mapping[TopicPartition, int]) -> None:
        assert isinstance(reader, ConfluentReader)
        producer, group = self._producer, reader.group_metadata()
        with _outcome(FAIL):
            _in_time(FAIL, lambda: producer.send_offsets_to_transaction(_places(offsets), group))

    def commit(self) -> None:
        with _outcome(UNKNOWN, breaks=True):
            self._producer.commit_transaction(_block_seconds())

    def abort(self) -> None:
        with _outcome(UNKNOWN, breaks=True):
            self._producer.abort_transaction(_block_seconds())


class ConfluentReader(base.Reader):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = _made(confluent_kafka.Consumer, settings)
        self._polled = base.Polled()
        self._rebalances = 0

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        with _outcome(FAIL):
            self._consumer.assign(_places(dict.fromkeys(partitions, OFFSET_BEGINNING)))

    def subscribe(self, topics: Sequence[str]) -> None:
        with _outcome(FAIL):
            self._consumer.subscribe(
                list(topics),
                on_assign=self._rebalanced,
                on_revoke=self._rebalanced,
                on_lost=self._rebalanced,
            )

    def _rebalanced(self, _: confluent_kafka.Consumer, partitions: list[Any]) -> None:
        self._polled.add_rebalance(partitions)

    def poll(self, seconds: float) -> list[base.MicroOperation]:
        for _ in range(base.POLL_RECORDS_MAX):
            with _outcome(FAIL):
                message = self._consumer.poll(seconds)
            if message is None:
                break
            error = message.error()
            if error is not None:
                # A fatal error comes once, and after it nothing.
                if error.fatal() or error.code() == confluent_kafka.KafkaError._FATAL:
                    raise OperationError(FAIL, f"{error.name()}: {error.str()}", is_broken=True)
                break
            partition = TopicPartition(message.topic(), message.partition())
            self._polled.add_record(partition, message.offset(), message.value())
            seconds = NO_WAIT
        return self._polled.take()

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        with _outcome(FAIL):
            for place in _places(offsets):
                self._consumer.seek(place)

    def assignment(self) -> list[TopicPartition]:
        with _outcome(FAIL):
            return sorted(TopicPartition(each.topic, each.partition) for each in self._consumer.assignment())

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        consumer = self._consumer
        with _outcome(UNKNOWN):
            results = _in_time(UNKNOWN, lambda: consumer.commit(offsets=_places(offsets), asynchronous=False))
        failed = [each.error for each in results if each.error is not None]
        if failed:
            raise OperationError(UNKNOWN, f"{failed[0].name()}: {failed[0].str()}")

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        with _outcome(FAIL):
            found = self._consumer.committed(_places(dict.fromkeys(partitions, 0)), timeout=_block_seconds())
        failed = [each.error for each in found if each.error is not None]
        if failed:
            raise OperationError(FAIL, f"{failed[0].name()}: {failed[0].str()}")
        return {
            TopicPartition(each.topic, each.partition): None if each.offset < 0 else each.offset
            for each in found
        }

    def group_metadata(self) -> Any:
        with _outcome(FAIL):
            return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        with contextlib.suppress(KafkaException, RuntimeError):
            self._consumer.close()

    def abandon(self) -> None:
        consumer = [self._consumer]
        del self._consumer
        _destroy_elsewhere(consumer)


def _places(offsets: Mapping[TopicPartition, int]) -> list[confluent_kafka.TopicPartition]:
    return [confluent_kafka.TopicPartition(*partition, offset) for partition, offset in offsets.items()]


class Confluent:
    def writer(self, bootstrap: str, client_id: str, *, in_flight: bool = False) -> ConfluentWriter:
        settings = _producer_settings(bootstrap, client_id)
        return ConfluentWriter({**settings, "batch.num.messages": 1} if in_flight else settings)

    def transactional_writer(
        self, bootstrap: str, client_id: str, transactional_id: str
    ) -> ConfluentTransactionalWriter:
        return ConfluentTransactionalWriter(
            {
                **_producer_settings(bootstrap, client_id),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": base.TRANSACTION_TIMEOUT_MS,
                # It may not be larger than the timeout of the transaction.
                "delivery.timeout.ms": base.TRANSACTION_TIMEOUT_MS,
            }
        )

    def reader(self, bootstrap: str, client_id: str, group: Group | None = None) -> ConfluentReader:
        settings = {
            **_common(bootstrap, client_id),
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": base.FETCH_WAIT_MS,
            # The library needs one even for assign.
            "group.id": f"unused-{client_id}" if group is None else group.id,
        }
        if group is not None:
            settings |= {"group.protocol": group.protocol, "group.instance.id": group.instance_id}
            if group.protocol == "classic":
                settings |= {
                    "partition.assignment.strategy": group.assignor,
                    "session.timeout.ms": base.SESSION_TIMEOUT_MS,
                    "max.poll.interval.ms": base.POLL_INTERVAL_MS_MAX,
                    "heartbeat.interval.ms": base.HEARTBEAT_INTERVAL_MS,
                }
        return ConfluentReader(settings)
