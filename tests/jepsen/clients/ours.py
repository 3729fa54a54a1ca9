"""barnabas.Producer and barnabas.Consumer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.jepsen.clients import base
from tests.jepsen.clients.base import FAIL, OK, UNKNOWN, Group, OperationError, Record, Sent

import barnabas
from barnabas.client.consumer import RebalanceListener
from barnabas.client.errors import (
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from barnabas.ids import TopicPartition

# The library ends a record after delivery.timeout.ms; this is for a library that does not.
PATIENCE_SECONDS = base.DELIVERY_TIMEOUT_MS / 1000 + 20
CLOSE_SECONDS_MAX = 10.0


def _common(bootstrap: str, client_id: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "request.timeout.ms": base.REQUEST_TIMEOUT_MS,
        "reconnect.backoff.max.ms": base.BACKOFF_MS_MAX,
        "retry.backoff.max.ms": base.BACKOFF_MS_MAX,
    }


def _producer_settings(bootstrap: str, client_id: str) -> dict[str, Any]:
    return {
        **_common(bootstrap, client_id),
        "acks": "all",
        "enable.idempotence": True,
        "delivery.timeout.ms": base.DELIVERY_TIMEOUT_MS,
        "max.block.ms": base.BLOCK_MS,
        "linger.ms": 0,
    }


@contextlib.contextmanager
def _outcome(outcome: str, *, broken_by: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """What an error inside means."""
    try:
        yield
    except (KafkaError, ClosedError) as error:
        raise OperationError(outcome, error, is_broken=isinstance(error, broken_by)) from error


def _made(make: Callable[[], Any]) -> Any:
    with _outcome(FAIL):
        return make()


class OurWriter(base.Writer):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._producer: barnabas.Producer = _made(lambda: barnabas.Producer(settings))

    def send(self, records: Sequence[Record]) -> list[Sent]:
        return [self._outcome(begun) for begun in [self._begin(*record) for record in records]]

    def _begin(self, partition: TopicPartition, value: int) -> Any:
        """A future, or the error that is known at once: then the record is not in the producer."""
        topic, number = partition
        try:
            return self._producer.send(topic, base.encode(value), partition=number)
        except (KafkaError, ClosedError) as error:
            return Sent(FAIL, None, repr(error))

    def _outcome(self, begun: Any) -> Sent:
        if isinstance(begun, Sent):
            return begun
        try:
            offset = begun.result(PATIENCE_SECONDS).offset
        except (KafkaError, ClosedError, TimeoutError) as error:
            return Sent(UNKNOWN, None, repr(error))
        return Sent(OK, None if offset < 0 else offset)

    def close(self) -> None:
        self._producer.close(CLOSE_SECONDS_MAX)

    def abandon(self) -> None:
        self._producer.close(0)


class OurTransactionalWriter(OurWriter, base.TransactionalWriter):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        try:
            with _outcome(FAIL):
                self._producer.init_transactions()
        except OperationError:
            self.abandon()
            raise

    def begin(self) -> None:
        with _outcome(FAIL, broken_by=(KafkaError,)):
            self._producer.begin_transaction()

    def send_offsets(self, reader: base.Reader, offsets: Mapping[TopicPartition, int]) -> None:
        assert isinstance(reader, OurReader)
        with _outcome(FAIL, broken_by=(ProducerFencedError,)):
            self._producer.send_offsets_to_transaction(_positions(offsets), reader.group_metadata())

    def commit(self) -> None:
        with _outcome(UNKNOWN, broken_by=(ProducerFencedError, KafkaTimeoutError)):
            self._producer.commit_transaction()

    def abort(self) -> None:
        with _outcome(UNKNOWN, broken_by=(KafkaError,)):
            self._producer.abort_transaction()


class _Listener(RebalanceListener):
    def __init__(self, polled: base.Polled) -> None:
        self._polled = polled

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._polled.add_rebalance(partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._polled.add_rebalance(partitions)


class OurReader(base.Reader):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer: barnabas.Consumer = _made(lambda: barnabas.Consumer(settings))
        self._polled = base.Polled()

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._consumer.assign(partitions)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(list(topics), _Listener(self._polled))

    def poll(self, seconds: float) -> list[base.MicroOperation]:
        with _outcome(FAIL):
            records = self._consumer.poll(seconds)
        for partition in sorted(records.partitions()):
            for record in records.records(partition):
                self._polled.add_record(partition, record.offset, record.value)
        return self._polled.take()

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        with _outcome(FAIL):
            for partition, offset in offsets.items():
                self._consumer.seek(partition, offset)

    def assignment(self) -> list[TopicPartition]:
        return sorted(self._consumer.assignment())

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        with _outcome(UNKNOWN):
            self._consumer.commit_sync(_positions(offsets))

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        with _outcome(FAIL):
            found = self._consumer.committed(partitions)
        return {each: None if place is None else place.offset for each, place in found.items()}

    def group_metadata(self) -> Any:
        return self._consumer.group_metadata()

    def close(self) -> None:
        with contextlib.suppress(KafkaError):
            self._consumer.close(CLOSE_SECONDS_MAX)

    def abandon(self) -> None:
        with contextlib.suppress(KafkaError):
            self._consumer.close(0)


def _positions(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, barnabas.OffsetAndMetadata]:
    return {partition: barnabas.OffsetAndMetadata(offset) for partition, offset in offsets.items()}


class Ours:
    def writer(self, bootstrap: str, client_id: str, *, in_flight: bool = False) -> OurWriter:
        settings = _producer_settings(bootstrap, client_id)
        return OurWriter({**settings, "batch.size": 0} if in_flight else settings)

    def transactional_writer(
        self, bootstrap: str, client_id: str, transactional_id: str
    ) -> OurTransactionalWriter:
        return OurTransactionalWriter(
            {
                **_producer_settings(bootstrap, client_id),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": base.TRANSACTION_TIMEOUT_MS,
            }
        )

    def reader(self, bootstrap: str, client_id: str, group: Group | None = None) -> OurReader:
        settings = {
            **_common(bootstrap, client_id),
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "default.api.timeout.ms": base.BLOCK_MS,
            "fetch.max.wait.ms": base.FETCH_WAIT_MS,
            "max.poll.records": base.POLL_RECORDS_MAX,
        }
        if group is not None:
            settings |= {"group.id": group.id, "group.protocol": group.protocol}
            if group.instance_id is not None:
                settings["group.instance.id"] = group.instance_id
            if group.protocol == "classic":
                settings |= {
                    "partition.assignment.strategy": group.assignor,
                    "session.timeout.ms": base.SESSION_TIMEOUT_MS,
                    "max.poll.interval.ms": base.POLL_INTERVAL_MS_MAX,
                    "heartbeat.interval.ms": base.HEARTBEAT_INTERVAL_MS,
                }
        return OurReader(settings)
