"""Java's KafkaProducer and KafkaConsumer: one JVM (judge.HistoryClients) for all clients of this process. It
gets commands through its input."""

from __future__ import annotations

import atexit
import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tests.java.jvm import compiled_sources, java_command
from tests.jepsen.clients import base
from tests.jepsen.clients.base import FAIL, OK, UNKNOWN, Group, OperationError, Record, Sent

from barnabas.ids import TopicPartition

# The library ends each call by itself; this is for one that does not.
ANSWER_SECONDS_MAX = base.DELIVERY_TIMEOUT_MS / 1000 + 30
# Errors after which a producer with transactions cannot go on, and a timeout of a commit, after which it may
# only commit again.
BROKEN_BY = frozenset(
    {
        "ProducerFencedException",
        "InvalidProducerEpochException",
        "OutOfOrderSequenceException",
        "UnsupportedVersionException",
        "AuthorizationException",
        "IllegalStateException",
        "TimeoutException",
        "InterruptException",
    }
)


class Jvm:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command("judge.HistoryClients", []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ids = itertools.count()
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        threading.Thread(target=self._listen, daemon=True).start()
        atexit.register(self._process.kill)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            self._waiting[answer["id"]].put(answer)

    def call(self, client: str, command: str, **arguments: Any) -> dict[str, Any]:
        """The answer: a `result`, or a `failure` with a `text`."""
        assert self._process.stdin is not None
        number = next(self._ids)
        mine = self._waiting[number] = queue.SimpleQueue()
        line = json.dumps({"id": number, "client": client, "command": command, **arguments})
        with self._lock:
            print(line, file=self._process.stdin, flush=True)
        try:
            return mine.get(timeout=ANSWER_SECONDS_MAX)
        except queue.Empty:
            return {"failure": "NoAnswer", "text": f"no answer to {command}"}
        finally:
            del self._waiting[number]


def prepare() -> None:
    """Compile the program, once before several processes use it."""
    compiled_sources()


_lives = itertools.count()
_starting = threading.Lock()


def jvm() -> Jvm:
    """The one of this process."""
    with _starting:
        return _jvm()


@cache
def _jvm() -> Jvm:
    return Jvm()


class JavaClient(base.Client):
    def __init__(self, kind: str, settings: Mapping[str, Any]) -> None:
        self.name = f"{settings['client.id']}-{next(_lives)}"
        self.call(f"open {kind}", FAIL, settings=dict(settings))

    def call(self, command: str, outcome: str, breaks: bool = False, **arguments: Any) -> Any:
        """`outcome` is what a failure means."""
        answer = jvm().call(self.name, command, **arguments)
        if "failure" in answer:
            is_broken = breaks and answer["failure"] in BROKEN_BY
            raise OperationError(outcome, answer["text"], is_broken=is_broken)
        return answer["result"]

    def close(self) -> None:
        jvm().call(self.name, "close")

    def abandon(self) -> None:
        jvm().call(self.name, "abandon")


class JavaWriter(JavaClient, base.Writer):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__("writer", settings)

    def send(self, records: Sequence[Record]) -> list[Sent]:
        named = [[*partition, base.encode(value).decode()] for partition, value in records]
        try:
            outcomes = self.call("send", UNKNOWN, records=named)
        except OperationError as error:
            return [Sent(UNKNOWN, None, str(error))] * len(records)
        return [
            Sent(UNKNOWN, None, each["failure"]) if "failure" in each else Sent(OK, each["offset"])
            for each in outcomes
        ]


class JavaTransactionalWriter(JavaWriter, base.TransactionalWriter):
    def begin(self) -> None:
        self.call("begin", FAIL, breaks=True)

    def send_offsets(self, reader: base.Reader, offsets: Mapping[TopicPartition, int]) -> None:
        assert isinstance(reader, JavaReader)
        self.call("send offsets", FAIL, breaks=True, reader=reader.name, offsets=_places(offsets))

    def commit(self) -> None:
        self.call("commit", UNKNOWN, breaks=True)

    def abort(self) -> None:
        self.call("abort", UNKNOWN, breaks=True)


class JavaReader(JavaClient, base.Reader):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__("reader", settings)

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.call("assign", FAIL, partitions=list(map(list, partitions)))

    def subscribe(self, topics: Sequence[str]) -> None:
        self.call("subscribe", FAIL, topics=list(topics))

    def poll(self, seconds: float) -> list[base.MicroOperation]:
        found = self.call("poll", FAIL, ms=int(seconds * 1000))
        polled = base.Polled()
        if found["rebalanced"]:
            polled.add_rebalance([TopicPartition(*each) for each in found["rebalanced"]])
        for topic, number, offset, value in found["records"]:
            polled.add_record(TopicPartition(topic, number), offset, value.encode())
        return polled.take()

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.call("seek", FAIL, offsets=_places(offsets))

    def assignment(self) -> list[TopicPartition]:
        return sorted(TopicPartition(*each) for each in self.call("assignment", FAIL))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.call("commit", UNKNOWN, offsets=_places(offsets))

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        found = self.call("committed", FAIL, partitions=list(map(list, partitions)))
        return {
            TopicPartition(topic, number): None if offset < 0 else offset for topic, number, offset in found
        }


def _places(offsets: Mapping[TopicPartition, int]) -> list[list[Any]]:
    return [[*partition, offset] for partition, offset in offsets.items()]


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
        "enable.idempotence": "true",
        "delivery.timeout.ms": base.DELIVERY_TIMEOUT_MS,
        "max.block.ms": base.BLOCK_MS,
        "linger.ms": 0,
    }


class Java:
    def writer(self, bootstrap: str, client_id: str, *, in_flight: bool = False) -> JavaWriter:
        settings = _producer_settings(bootstrap, client_id)
        return JavaWriter({**settings, "batch.size": 1} if in_flight else settings)

    def transactional_writer(
        self, bootstrap: str, client_id: str, transactional_id: str
    ) -> JavaTransactionalWriter:
        return JavaTransactionalWriter(
            {
                **_producer_settings(bootstrap, client_id),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": base.TRANSACTION_TIMEOUT_MS,
            }
        )

    def reader(self, bootstrap: str, client_id: str, group: Group | None = None) -> JavaReader:
        settings = {
            **_common(bootstrap, client_id),
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "allow.auto.create.topics": "false",
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
                    "partition.assignment.strategy": ASSIGNORS[group.assignor],
                    "session.timeout.ms": base.SESSION_TIMEOUT_MS,
                    "max.poll.interval.ms": base.POLL_INTERVAL_MS_MAX,
                    "heartbeat.interval.ms": base.HEARTBEAT_INTERVAL_MS,
                }
        return JavaReader(settings)


ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
