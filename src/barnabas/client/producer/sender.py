"""The sender takes ready batches, sends them to the leaders of their partitions, and handles the answers.

All of it runs on the I/O thread. `turn()` is called whenever there may be something to do: a batch is full or
has lingered long enough, an answer or new metadata arrived, a connection opened, or a retry is due."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any

from barnabas.client.errors import (
    AuthenticationError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    error_from,
)
from barnabas.client.metadata import Leader
from barnabas.client.producer.accumulator import Accumulator, PartitionQueue
from barnabas.client.producer.batch import ProducerBatch, split_batch
from barnabas.client.producer.direct import DirectSending
from barnabas.client.producer.ports import (
    CONCURRENT_TRANSACTIONS_SECONDS,
    BrokerNode,
    ClusterView,
    SenderSettings,
    Sent,
    TransactionView,
)
from barnabas.client.producer.sequences import EPOCH_MAX, SequenceBook
from barnabas.client.troubles import cause_of
from barnabas.client.types import Node, TopicPartition
from barnabas.errors import error_of
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import init_producer_id, produce

_log = logging.getLogger(__name__)
INT_MAX = 2**31 - 1
# Version 13 identifies topics by id, which brings no advantage here.
PRODUCE_VERSION_MAX = 12
# Up to this version, Produce does not add the partition to the transaction.
PRODUCE_VERSION_MAX_EXPLICIT_ADD = 11
# The short way gives the event loop back after so long.
DIRECT_SECONDS_MAX = 0.02

_STALE_METADATA = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
# The leader has not committed the batch in time: it says so, or the client has given up the connection.
_NO_ANSWER = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})
# After these errors the broker may still have written the batch.
_UNSURE = _NO_ANSWER | {ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}


class Sender:
    def __init__(
        self,
        accumulator: Accumulator,
        view: ClusterView,
        settings: SenderSettings,
        book: SequenceBook,
        transaction: TransactionView | None,
    ) -> None:
        self.settings = settings
        self.metrics = {
            "record-send-total": 0,
            "record-error-total": 0,
            "record-retry-total": 0,
            "batch-split-total": 0,
        }
        self.fatal: KafkaError | None = None
        self._accumulator = accumulator
        self._view = view
        self._book = book
        self._transaction = transaction
        self._nodes: dict[int, BrokerNode] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._expire_at = 0.0
        self._corked: list[BrokerConnection] = []
        self._queues: dict[ProducerBatch, PartitionQueue] = {}
        self._direct = DirectSending(accumulator, settings, book, self._queues, self.metrics)

    # ---- what to send

    def turn(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self.settings.is_idempotent:
            self._prepare_sequences()
        if now >= self._expire_at:
            self._expire_at = self._expire(now)
        self._send_directly(now)
        now = loop.time()
        wake_at = self._send_ready(now)
        while wake_at < 0:
            # A partition with more full batches may have several requests in flight.
            wake_at = self._send_ready(now)
        while self._corked:
            self._corked.pop().uncork()
        self._sleep_until(min(wake_at, self._expire_at), now)

    def _send_directly(self, now: float) -> None:
        """The short way, if batches wait for one partition only: with more of them, requests of several
        batches are better."""
        loop = asyncio.get_running_loop()
        while len(queues := list(self._accumulator.waiting)) == 1 and loop.time() - now < DIRECT_SECONDS_MAX:
            node_id = self._view.leader_of(queues[0].partition)
            node = None if node_id is None else self._nodes.get(node_id)
            if node is None or not self._direct.send(queues[0], node, self._version_max(), self._answered):
                return
            self._watch(node, node.connection)

    def _send_ready(self, now: float) -> float:
        """Send at most one ready batch of each partition. Returns the time of the next turn, -1 if it sent
        any."""
        requests: dict[int, Sent] = {}
        wake_at = float("inf")
        is_leaderless = False
        for queue in list(self._accumulator.waiting):
            ready_at = self._accumulator.ready_at(queue)
            if ready_at > now:
                wake_at = min(wake_at, ready_at)
                continue
            node_id = self._view.leader_of(queue.partition)
            if node_id is None:
                is_leaderless = True
            elif self._has_room(node_id, queue, requests.get(node_id, ())):
                requests.setdefault(node_id, []).append((queue, queue.batches[0]))
        if is_leaderless:
            self._start_task("metadata", self._refresh)
        for node_id, sent in requests.items():
            self._send(node_id, sent)
        return -1.0 if requests else wake_at

    def _sleep_until(self, when: float, now: float) -> None:
        """Schedule the next turn for `when`, or keep a timer that fires earlier: an extra turn does no
        harm."""
        if self._timer is not None:
            if now < self._timer.when() <= when:
                return
            self._timer.cancel()
            self._timer = None
        if when < float("inf"):
            self._timer = asyncio.get_running_loop().call_later(max(when - now, 0.0005), self.turn)

    def _has_room(self, node_id: int, queue: PartitionQueue, taken: "Sent | tuple[()]") -> bool:
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = BrokerNode()
        if node.connection is None or node.connection.is_closed:
            self._start_task(f"connection {node_id}", partial(self._connect, node_id, node))
            return False
        batch = queue.batches[0]
        if len(node.in_flight) >= self.settings.in_flight_max:
            return False
        if taken and sum(other.size for _, other in taken) + batch.size > self.settings.request_bytes_max:
            return False
        if self.settings.in_flight_max == 1 and queue.on_wire:
            return False
        if self.settings.is_idempotent and not self._book.may_send(queue.partition, batch):
            return False
        return self._transaction is None or self._transaction.may_send(queue)

    def _send(self, node_id: int, sent: Sent) -> None:
        node = self._nodes[node_id]
        request = produce.ProduceRequest(
            transactional_id=self.settings.transactional_id,
            acks=self.settings.acks,
            timeout_ms=int(self.settings.request_seconds * 1000),
        )
        topics: dict[str, produce.TopicProduceData] = {}
        for queue, batch in sent:
            self._accumulator.take(queue)
            queue.on_wire += 1
            self._queues[batch] = queue
            batch.attempts += 1
            if self.settings.is_idempotent:
                self._book.sending(queue.partition, batch)
            data = topics.setdefault(queue.topic.name, produce.TopicProduceData(name=queue.topic.name))
            records = memoryview(batch.sealed(self.settings.packing))
            data.partition_data.append(produce.PartitionProduceData(index=queue.index, records=records))
        request.topic_data = list(topics.values())
        connection = node.connection
        assert connection is not None
        loop = asyncio.get_running_loop()
        node.in_flight.append((loop.time(), sent))
        if connection not in self._corked:
            connection.cork()
            self._corked.append(connection)
        answered = partial(self._answered, node, sent)
        try:
            if self.settings.acks == 0:
                connection.send_no_reply(produce.API_KEY, request, version_max=self._version_max())
                loop.call_soon(answered, None)
                return
            connection.ask(produce.API_KEY, request, answered, version_max=self._version_max())
        except KafkaError as error:
            loop.call_soon(answered, error)
            return
        self._watch(node, connection)

    def _watch(self, node: BrokerNode, connection: BrokerConnection | None) -> None:
        if node.timer is None and node.in_flight and connection is not None:
            seconds, loop = self.settings.request_seconds, asyncio.get_running_loop()
            node.timer = loop.call_later(seconds, self._close_if_late, node, connection)

    def _close_if_late(self, node: BrokerNode, connection: BrokerConnection) -> None:
        """As in Kafka: a broker that does not answer one request will not answer the following ones."""
        node.timer = None
        if not node.in_flight or node.connection is not connection:
            return
        seconds = self.settings.request_seconds
        left = connection.seconds_left(node.in_flight[0][0], seconds)
        if left <= 0:
            connection.close(f"no answer within {seconds:g} s")
        else:
            node.timer = asyncio.get_running_loop().call_later(left, self._close_if_late, node, connection)

    def _version_max(self) -> int:
        if self._transaction is not None and not self._transaction.adds_implicitly:
            return PRODUCE_VERSION_MAX_EXPLICIT_ADD
        return PRODUCE_VERSION_MAX

    # ---- answers

    def _answered(
        self, node: BrokerNode, sent: Sent, outcome: produce.ProduceResponse | KafkaError | None
    ) -> None:
        """The answer to a request, or the error that came instead; None with acks=0."""
        node.in_flight.popleft()
        error = outcome if isinstance(outcome, KafkaError) else None
        response = None if isinstance(outcome, KafkaError) else outcome
        if response is not None and response.node_endpoints:
            self._learn_leaders(response)
        answers = {
            (topic.name, answer.index): answer
            for topic in (response.responses if response is not None else ())
            for answer in topic.partition_responses
        }
        for queue, batch in sent:
            queue.on_wire -= 1
            self._queues.pop(batch, None)
            answer = answers.get((queue.topic.name, queue.index))
            if answer is None and error is None and self.settings.acks != 0:
                error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a partition is missing in the answer")
            self._settle(queue, batch, answer or _answer_of(error))
        if node.connection is None or not node.connection.is_reading:
            self.turn()

    def _learn_leaders(self, response: produce.ProduceResponse) -> None:
        leaders = {
            TopicPartition(topic.name, answer.index): Leader(
                answer.current_leader.leader_id, answer.current_leader.leader_epoch
            )
            for topic in response.responses
            for answer in topic.partition_responses
            if answer.current_leader.leader_id >= 0
        }
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        self._view.learn_leaders(leaders, nodes)

    def _settle(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: produce.PartitionProduceResponse
    ) -> None:
        code = error_of(answer.error_code)
        if batch.is_done:
            # The batch expired while its request was in flight.
            return
        if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._succeed(queue, batch, answer)
        elif code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(queue, batch)
        elif self._may_retry(queue, batch, answer):
            self._retry(queue, batch, answer)
        else:
            self._fail(queue, batch, answer)

    def _succeed(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: produce.PartitionProduceResponse
    ) -> None:
        offset = -1 if answer.error_code or self.settings.acks == 0 else answer.base_offset
        if self.settings.is_idempotent:
            self._book.acknowledged(queue.partition, batch, offset)
        self.metrics["record-send-total"] += batch.count
        self._accumulator.release(batch)
        batch.finish(offset, answer.log_append_time_ms)

    def _may_retry(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: produce.PartitionProduceResponse
    ) -> bool:
        if batch.attempts > self.settings.retries or self.fatal is not None:
            return False
        code = error_of(answer.error_code)
        if self.settings.is_idempotent:
            return self._book.can_retry(queue.partition, batch, code, answer.log_start_offset)
        return code.retriable

    def _retry(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: produce.PartitionProduceResponse
    ) -> None:
        self.metrics["record-retry-total"] += batch.count
        batch.cause = f": {cause_of(error_from(answer.error_code, answer.error_message))}"
        new_leader = answer.current_leader.leader_id
        if new_leader >= 0 and self._view.leader_of(queue.partition) == new_leader:
            # The answer named the new leader: nothing else is there to wait for.
            batch.retry_at = asyncio.get_running_loop().time()
            self._accumulator.put_back(queue, [batch])
            return
        pause = min(
            self.settings.backoff_seconds * 2 ** min(batch.attempts - 1, 16),
            self.settings.backoff_seconds_max,
        )
        if error_of(answer.error_code) is ErrorCode.CONCURRENT_TRANSACTIONS:
            pause = min(pause, CONCURRENT_TRANSACTIONS_SECONDS)
        batch.retry_at = asyncio.get_running_loop().time() + pause
        self._accumulator.put_back(queue, [batch])
        if error_of(answer.error_code) in _STALE_METADATA:
            leader = self._view.leader_of(queue.partition)
            if error_of(answer.error_code) in _NO_ANSWER and leader is not None:
                # Others may have another leader already, and only this one does not know.
                self._view.avoid(leader)
            self._start_task("metadata", self._refresh)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        parts = split_batch(batch, self._accumulator.limits.batch_bytes)
        if self.settings.is_idempotent:
            self._book.split(queue.partition, batch, [part for _, part in parts])
        self.metrics["batch-split-total"] += 1
        self._accumulator.replace(batch, [part for _, part in parts])
        self._accumulator.put_back(queue, [part for _, part in parts])
        batch.split_into(parts)

    def _fail(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: produce.PartitionProduceResponse
    ) -> None:
        code = error_of(answer.error_code)
        batch.record_errors = {
            entry.batch_index: entry.batch_index_error_message or code.text for entry in answer.record_errors
        }
        was_refused = batch.attempts <= self.settings.retries and code not in _UNSURE
        self._fail_with(queue, batch, error_from(answer.error_code, answer.error_message), was_refused)

    def _fail_with(
        self, queue: PartitionQueue, batch: ProducerBatch, error: KafkaError, was_refused: bool
    ) -> None:
        if self.settings.is_idempotent:
            self._book.failed(queue.partition, batch, was_refused)
        self.metrics["record-error-total"] += batch.count
        self._accumulator.remove(queue, batch)
        self._accumulator.release(batch)
        if self._transaction is not None:
            error = self._transaction.batch_failed(error)
        batch.finish(error=error)

    def _expire(self, now: float) -> float:
        """Fail the batches that are older than delivery.timeout.ms. Returns when the next one expires."""
        limit = now - self.settings.delivery_seconds
        # A batch that is opened from now on cannot expire earlier than this.
        next_at = now + self.settings.delivery_seconds
        oldest = [(queue, batch) for batch, queue in self._queues.items()]
        oldest += [(queue, queue.batches[0]) for queue in list(self._accumulator.waiting)]
        for queue, batch in oldest:
            if batch.is_done:
                continue
            if batch.created > limit:
                next_at = min(next_at, batch.created + self.settings.delivery_seconds)
                continue
            text = (
                f"{batch.count} records for {queue.partition} were not confirmed within delivery.timeout.ms"
            )
            error = KafkaTimeoutError(f"{text}{batch.cause or batch.explain()}")
            self._fail_with(queue, batch, error, was_refused=False)
            next_at = now
        return next_at

    def fail_all(self, error: KafkaError, *, unsent_only: bool = False) -> None:
        """Fail all waiting batches and, unless `unsent_only`, those in flight: for close, abort and
        fencing."""
        for queue in list(self._accumulator.waiting):
            for batch in list(queue.batches):
                self._fail_with(queue, batch, error, was_refused=batch.attempts == 0)
        if not unsent_only:
            for batch, queue in list(self._queues.items()):
                self._fail_with(queue, batch, error, was_refused=False)

    # ---- background tasks

    def _start_task(self, name: str, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task unless one of this name is running; a turn follows it."""
        if name not in self._tasks:
            self._tasks[name] = task = asyncio.get_running_loop().create_task(start())
            task.add_done_callback(partial(self._task_done, name))

    def _task_done(self, name: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(name, None)
        if task.cancelled():
            return
        if error := task.exception():
            _log.error("the producer's sender failed: %s", error, exc_info=error)
        self.turn()

    async def _connect(self, node_id: int, node: BrokerNode) -> None:
        try:
            node.connection = await self._view.connection(node_id)
            # Answers that arrive together are followed by one turn, which fills the requests in flight again.
            node.connection.when_read = self.turn
        except KafkaError as error:
            if isinstance(error, AuthenticationError):
                self._fail_waiting_for(node_id, error)
            await asyncio.sleep(self.settings.backoff_seconds)
            await self._refresh()

    def _fail_waiting_for(self, node_id: int, error: KafkaError) -> None:
        """The broker and we do not accept each other: trying again until delivery.timeout.ms would not
        help."""
        for queue in list(self._accumulator.waiting):
            if self._view.leader_of(queue.partition) == node_id:
                for batch in list(queue.batches):
                    self._fail_with(queue, batch, error, was_refused=batch.attempts == 0)

    async def _refresh(self) -> None:
        try:
            await self._view.refresh()
        except KafkaError as error:
            # A broker that cannot be reached has been logged; other reasons are rare.
            _log.debug("cannot update the metadata: %s", error)
        await asyncio.sleep(self.settings.backoff_seconds)

    def _prepare_sequences(self) -> None:
        """Get a producer id if there is none, and renumber the partitions that are marked for it."""
        book = self._book
        if self._transaction is not None:
            ready = self._ready_to_restart()
            if ready:
                book.restart(ready)
            return
        if not book.has_id:
            if self._accumulator.waiting:
                self._start_task("producer id", self._get_producer_id)
            return
        ready = self._ready_to_restart()
        if not ready:
            return
        if book.epoch >= EPOCH_MAX:
            self._start_task("producer id", self._get_producer_id)
        else:
            book.begin(book.producer_id, book.epoch + 1)
            book.restart(ready)

    def _ready_to_restart(self) -> set[Hashable]:
        """The partitions to renumber that have no request in flight."""
        if not self._book.to_restart:
            return set()
        busy = {queue.partition for queue in self._queues.values()}
        return {key for key in self._book.to_restart if key not in busy}

    async def _get_producer_id(self) -> None:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=INT_MAX
        )
        try:
            connection = await self._view.any()
            response = await connection.send(init_producer_id.API_KEY, request)
            if response.error_code == 0:
                self._book.begin(response.producer_id, response.producer_epoch)
                self._book.restart(self._ready_to_restart())
                return
            error = error_from(response.error_code)
        except KafkaError as raised:
            error = raised
        if not error.retriable:
            self.fatal = error
            self.fail_all(error)
            return
        await asyncio.sleep(self.settings.backoff_seconds)


def _answer_of(error: KafkaError | None) -> produce.PartitionProduceResponse:
    """A made-up answer for a request that got none: the connection failed, or acks is 0."""
    if error is None:
        return produce.PartitionProduceResponse()
    return produce.PartitionProduceResponse(error_code=int(error.code), error_message=error.message)
