"""The short way of a producer's batches: if many wait for one partition and all is as usual, a kernel sends
them and reads the answers without the lock of the interpreter (kernels/produce_exchange.py, net/direct.py).

The short way does what the sender does for each batch, for many of them at once. It begins only if the
sender would send these batches, each in a request of its own, and ends at the first answer that is not plain:
that one, and the batches behind it, are left to the sender."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.client.errors import KafkaError
from barnabas.client.producer.accumulator import Accumulator, PartitionQueue
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.ports import BrokerNode, SenderSettings, Sent
from barnabas.client.producer.sequences import SequenceBook
from barnabas.kernels.produce_exchange import REQUESTS_MAX, ProduceExchange
from barnabas.net.broker_connection import BrokerConnection
from barnabas.net.direct import DirectSocket
from barnabas.records.compression import NONE
from barnabas.wire.codec import RequestHeader, encode_request, encode_response
from barnabas.wire.messages import produce

# With fewer batches the short way is not shorter.
REQUESTS_MIN = 3
# The first run takes so many batches. After one that sent all, the next takes twice as many; otherwise it
# takes a few more than could be sent, since what is prepared and not sent is prepared again.
REQUESTS_FIRST = 16
REQUESTS_MORE = 8
# Numbers that are nowhere else in an answer.
_OFFSET = 0x0102030405060708
_RECORDS_END = b"\0\0\0"

WhenAnswered = Callable[[BrokerNode, Sent, Any], None]


class DirectSending:
    def __init__(
        self,
        accumulator: Accumulator,
        settings: SenderSettings,
        book: SequenceBook,
        queues: dict[ProducerBatch, PartitionQueue],
        metrics: dict[str, int],
    ) -> None:
        self._accumulator = accumulator
        self._settings = settings
        self._book = book
        self._queues = queues
        self._metrics = metrics
        self._has_plain_settings = (
            settings.is_idempotent and settings.transactional_id is None and settings.packing.codec == NONE
        )
        self._lane: _Lane | None = None

    def send(
        self, queue: PartitionQueue, node: BrokerNode, version_max: int, when_answered: WhenAnswered
    ) -> bool:
        """Send batches of the queue, and handle the answers that arrive meanwhile. False if not all is plain,
        or nothing could be done."""
        if not self._has_plain_settings or len(queue.batches) < REQUESTS_MIN:
            return False
        lane = self._lane_of(queue, node, version_max)
        if lane is None or not lane.socket.is_free or not self._is_plain(queue, node):
            return False
        if not lane.is_quick and len(node.in_flight) >= self._settings.in_flight_max:
            # A slow broker: the event loop waits for its answers.
            return False
        batches = self._accumulator.take_closed(queue, lane.count, REQUESTS_MIN)
        if not batches:
            return False
        if not lane.socket.begin(lane.exchange, len(batches)):
            self._accumulator.put_back(queue, batches)
            return False
        return self._send(lane, batches, partial(when_answered, node))

    def _lane_of(self, queue: PartitionQueue, node: BrokerNode, version_max: int) -> "_Lane | None":
        connection = node.connection
        lane = self._lane
        if lane is None or lane.queue is not queue or lane.connection is not connection:
            if not isinstance(connection, BrokerConnection) or connection.is_closed:
                return None
            version = _version_of(connection, version_max)
            if version < produce.FLEXIBLE_FROM or not DirectSocket.is_possible(connection):
                return None
            lane = self._lane = _Lane(queue, node, connection, version, self._settings)
        return lane

    def _is_plain(self, queue: PartitionQueue, node: BrokerNode) -> bool:
        """Whether nothing but new batches of this partition is on its way, and none must wait."""
        connection = node.connection
        if connection is None or connection.pending != len(node.in_flight):
            return False
        for _, sent in node.in_flight:
            if len(sent) != 1 or sent[0][0] is not queue or sent[0][1].is_done:
                return False
        return self._book.may_send_many(queue.partition, queue.batches[0])

    def _send(self, lane: "_Lane", batches: list[ProducerBatch], when_answered: Callable[..., None]) -> bool:
        exchange, queue, node = lane.exchange, lane.queue, lane.node
        packing = self._settings.packing
        self._book.sending_many(queue.partition, batches)
        for batch in batches:
            exchange.add(batch.sealed(packing))
        lane.socket.run(exchange)
        begun = exchange.begun
        more = begun if begun == len(batches) else REQUESTS_MORE
        lane.count = min(begun + more, REQUESTS_MAX)
        if begun < len(batches):
            self._book.take_back(queue.partition, batches[begun:])
            self._accumulator.put_back(queue, batches[begun:])
            del batches[begun:]
        outcomes = exchange.outcomes()
        confirmed = self._answered(lane, batches, len(outcomes))
        now = asyncio.get_running_loop().time()
        callbacks = []
        for batch in batches:
            sent = [(queue, batch)]
            batch.attempts = 1
            queue.on_wire += 1
            self._queues[batch] = queue
            node.in_flight.append((now, sent))
            callbacks.append(partial(when_answered, sent))
        lane.socket.end(exchange, callbacks)
        lane.is_quick = bool(confirmed)
        if confirmed:
            self._succeed(queue, confirmed, outcomes)
        return begun > 0 or lane.is_quick

    def _answered(self, lane: "_Lane", batches: list[ProducerBatch], count: int) -> list[ProducerBatch]:
        """The batches to which the answers belong: earlier ones, then those of `batches`, which loses
        them."""
        confirmed: list[ProducerBatch] = []
        while lane.node.in_flight and len(confirmed) < count:
            _, ((queue, batch),) = lane.node.in_flight.popleft()
            queue.on_wire -= 1
            self._queues.pop(batch, None)
            confirmed.append(batch)
        left = count - len(confirmed)
        confirmed += batches[:left]
        del batches[:left]
        return confirmed

    def _succeed(
        self, queue: PartitionQueue, batches: list[ProducerBatch], outcomes: list[tuple[int, int]]
    ) -> None:
        self._book.acknowledged_many(queue.partition, batches, outcomes[-1][0])
        self._metrics["record-send-total"] += sum([batch.count for batch in batches])
        self._accumulator.release_many(batches)
        for batch, (offset, append_time) in zip(batches, outcomes, strict=True):
            batch.finish(offset, append_time)


class _Lane:
    """The way of a partition's batches: over this connection, in requests of this form."""

    def __init__(
        self,
        queue: PartitionQueue,
        node: BrokerNode,
        connection: BrokerConnection,
        version: int,
        settings: SenderSettings,
    ) -> None:
        self.queue = queue
        self.node = node
        self.connection = connection
        self.socket = DirectSocket(connection, produce.API_KEY, version)
        self.exchange = exchange_of(queue, connection.client_id, version, settings)
        self.count = REQUESTS_FIRST
        # Whether answers came during the last run.
        self.is_quick = True


def _version_of(connection: BrokerConnection, version_max: int) -> int:
    try:
        return connection.version_of(produce.API_KEY, version_max=version_max)
    except KafkaError:
        # The ordinary way tells why.
        return -1


def exchange_of(
    queue: PartitionQueue, client_id: str | None, version: int, settings: SenderSettings
) -> ProduceExchange:
    """The codec writes a request without records and an answer without an error; the kernel completes the
    one and compares with the other."""
    name = queue.topic.name
    part = produce.PartitionProduceData(index=queue.index, records=memoryview(b""))
    request = produce.ProduceRequest(
        acks=settings.acks,
        timeout_ms=int(settings.request_seconds * 1000),
        topic_data=[produce.TopicProduceData(name=name, partition_data=[part])],
    )
    header = RequestHeader(produce.API_KEY, version, 0, client_id)
    prefix = b"".join(bytes(chunk) for chunk in encode_request(header, request))  # type: ignore[arg-type]
    answer = produce.PartitionProduceResponse(index=queue.index, base_offset=_OFFSET)
    topic = produce.TopicProduceResponse(name=name, partition_responses=[answer])
    response = produce.ProduceResponse(responses=[topic])
    chunks = encode_response(produce.API_KEY, version, 0, response)
    expected = b"".join(bytes(chunk) for chunk in chunks)[4:]  # type: ignore[arg-type]
    numbers_at = expected.index(_OFFSET.to_bytes(8, "big"))
    # The request ends with the length of its records and the tags after them.
    prefix = prefix[: -1 - len(_RECORDS_END)]
    return ProduceExchange(prefix, _RECORDS_END, expected, numbers_at, settings.in_flight_max)
