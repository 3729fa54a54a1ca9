"""Transactions of a producer: its requests to the transaction coordinator, on the I/O thread.

UNINITIALIZED -> READY            init_transactions: an id and an epoch, which fences older producers
READY -> IN_TRANSACTION           begin_transaction
IN_TRANSACTION -> READY           commit_transaction, abort_transaction
IN_TRANSACTION -> ABORTABLE       a record or an offset was not written; the user must call abort_transaction
any -> FATAL                      fenced by a newer producer, or not allowed; the user must call close

If the cluster has transaction.version 2 or more, the first batch sent to a partition adds the partition to
the transaction, and every commit or abort starts a new epoch. Otherwise each partition is added by a request
of its own, and a new epoch is requested only after a failure."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from barnabas.client.cluster import GROUP, TRANSACTION, Cluster
from barnabas.client.errors import (
    ErrorCode,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
    error_from,
    raise_for,
)
from barnabas.client.producer.accumulator import PartitionQueue
from barnabas.client.producer.ports import CONCURRENT_TRANSACTIONS_SECONDS
from barnabas.client.producer.sequences import SequenceBook
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.wire.message import Message
from barnabas.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)

FEATURE = "transaction.version"
IMPLICIT_ADD_FROM = 2
ADD_PARTITIONS_VERSION_MAX = 3  # later versions are for brokers
# The last versions without a new epoch at the end of each transaction.
END_VERSION_MAX, COMMIT_VERSION_MAX = 4, 4

_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FATAL = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.PRODUCER_FENCED,
    }
)
_LOST_COORDINATOR = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION}
)


class State(Enum):
    UNINITIALIZED = "not initialised: call init_transactions first"
    READY = "ready: call begin_transaction first"
    IN_TRANSACTION = "in a transaction"
    ABORTABLE = "failed: call abort_transaction"
    FATAL = "finished: close this producer"


class Transactions:
    def __init__(self, cluster: Cluster, book: SequenceBook, transactional_id: str, timeout_ms: int) -> None:
        self.state = State.UNINITIALIZED
        self.error: KafkaError | None = None
        self.adds_implicitly = False
        self.wake: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._book = book
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._added: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._has_offsets = False
        self._adding: asyncio.Task[None] | None = None

    def require(self, *states: State) -> None:
        """Raise an error unless the state is one of these; it says what went wrong or what to call first."""
        if self.state in states:
            return
        if self.error is not None:
            raise self.error
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"the transaction is {self.state.value}")

    # ---- for the sender

    def may_send(self, queue: PartitionQueue) -> bool:
        if self.state is State.FATAL:
            return False
        if self.adds_implicitly or queue.partition in self._added:
            self._added.add(queue.partition)
            return True
        self._to_add.add(queue.partition)
        if self._adding is None or self._adding.done():
            self._adding = asyncio.get_running_loop().create_task(self._add_waiting())
        return False

    def batch_failed(self, error: KafkaError) -> KafkaError:
        return self._fail(error)

    async def _add_waiting(self) -> None:
        """Add the partitions that wait for it, also those that arrive while a request is in flight."""
        try:
            while self._to_add and self.state is State.IN_TRANSACTION:
                partitions = sorted(self._to_add)
                await self._retry(partial(self._add_once, partitions=partitions))
                self._added.update(partitions)
                self._to_add.difference_update(partitions)
        except KafkaError as error:
            self._fail(error)
        self.wake()

    async def _add_once(self, connection: Any, partitions: list[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._book.producer_id,
            v3_and_below_producer_epoch=self._book.epoch,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )
        response = await connection.send(
            add_partitions_to_txn.API_KEY, request, version_max=ADD_PARTITIONS_VERSION_MAX
        )
        codes = [
            entry.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for entry in topic.results_by_partition
        ]
        for code in codes:
            if code != ErrorCode.OPERATION_NOT_ATTEMPTED:
                raise_for(code)

    # ---- for the user

    async def initialize(self) -> None:
        self.require(State.UNINITIALIZED, State.READY)
        await self._get_id(keep_id=False)
        self.state = State.READY

    def begin(self) -> None:
        self.require(State.READY)
        self._added.clear()
        self._to_add.clear()
        self._has_offsets = False
        self.state = State.IN_TRANSACTION

    async def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions that are written to without the sender, unless the first batch does so itself."""
        self.require(State.IN_TRANSACTION)
        to_add = sorted(set(partitions))
        try:
            if to_add and not self.adds_implicitly:
                await self._retry(partial(self._add_once, partitions=to_add))
        except KafkaError as error:
            raise self._fail(error) from None
        self._added.update(to_add)

    async def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Any) -> None:
        """`group`: a group id, or the metadata of a consumer's group with its member and generation."""
        self.require(State.IN_TRANSACTION)
        group_id = group if isinstance(group, str) else group.group_id
        try:
            if not self.adds_implicitly:
                await self._retry(lambda connection: self._add_group(connection, group_id))
            self._has_offsets = True
            request = self._offsets_request(offsets, group, group_id)
            await self._retry(lambda connection: self._commit_offsets(connection, request), GROUP, group_id)
        except KafkaError as error:
            raise self._fail(error) from None

    async def end(self, committed: bool) -> None:
        """Commit or abort. The outcome of every record must be known."""
        if not committed:
            self.require(State.IN_TRANSACTION, State.ABORTABLE)
        else:
            self.require(State.IN_TRANSACTION)
        has_failed = self.state is State.ABORTABLE
        if self._adding is not None:
            await asyncio.wait((self._adding,))
        try:
            if self._added or self._to_add or self._has_offsets:
                await self._retry(lambda connection: self._end_once(connection, committed))
            if has_failed and not self.adds_implicitly:
                await self._get_id(keep_id=True)
        except KafkaError as error:
            raise self._fail(error) from None
        self.error = None
        self.state = State.READY

    # ---- requests

    async def _get_id(self, keep_id: bool) -> None:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=self._timeout_ms
        )
        if keep_id:
            request.producer_id, request.producer_epoch = self._book.producer_id, self._book.epoch

        async def initialize_once(connection: Any) -> None:
            response = await connection.send(init_producer_id.API_KEY, request)
            raise_for(response.error_code)
            self.adds_implicitly = connection.finalized_features.get(FEATURE, 0) >= IMPLICIT_ADD_FROM
            self._book.begin(response.producer_id, response.producer_epoch)

        try:
            await self._retry(initialize_once)
        except KafkaError as error:
            raise self._fail(error) from None

    async def _add_group(self, connection: Any, group_id: str) -> None:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self._book.producer_id,
            producer_epoch=self._book.epoch,
            group_id=group_id,
        )
        raise_for((await connection.send(add_offsets_to_txn.API_KEY, request)).error_code)

    def _offsets_request(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: Any, group_id: str
    ) -> txn_offset_commit.TxnOffsetCommitRequest:
        topics: dict[str, txn_offset_commit.TxnOffsetCommitRequestTopic] = {}
        for (topic, index), position in offsets.items():
            entry = topics.setdefault(topic, txn_offset_commit.TxnOffsetCommitRequestTopic(name=topic))
            entry.partitions.append(
                txn_offset_commit.TxnOffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=position.offset,
                    committed_leader_epoch=position.leader_epoch,
                    committed_metadata=position.metadata,
                )
            )
        return txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group_id,
            producer_id=self._book.producer_id,
            producer_epoch=self._book.epoch,
            generation_id=getattr(group, "generation_id", -1),
            member_id=getattr(group, "member_id", ""),
            group_instance_id=getattr(group, "group_instance_id", None),
            topics=list(topics.values()),
        )

    async def _commit_offsets(self, connection: Any, request: Message) -> None:
        version_max = None if self.adds_implicitly else COMMIT_VERSION_MAX
        response = await connection.send(txn_offset_commit.API_KEY, request, version_max=version_max)
        for topic in response.topics:
            for entry in topic.partitions:
                raise_for(entry.error_code)

    async def _end_once(self, connection: Any, committed: bool) -> None:
        request = end_txn.EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._book.producer_id,
            producer_epoch=self._book.epoch,
            committed=committed,
        )
        version_max = None if self.adds_implicitly else END_VERSION_MAX
        response = await connection.send(end_txn.API_KEY, request, version_max=version_max)
        raise_for(response.error_code)
        if response.producer_id >= 0:
            self._book.begin(response.producer_id, response.producer_epoch)

    async def _retry(
        self,
        request: Callable[[Any], Coroutine[Any, Any, None]],
        kind: int = TRANSACTION,
        key: str | None = None,
    ) -> None:
        """Send a request to a coordinator, and again after retriable errors; the caller limits the time."""
        key = self._id if key is None else key
        failures = 0
        while True:
            try:
                await request(await self._cluster.coordinator(kind, key))
                return
            except KafkaError as error:
                if not error.retriable:
                    raise
                if error.code in _LOST_COORDINATOR or error.code is ErrorCode.REQUEST_TIMED_OUT:
                    self._cluster.forget_coordinator(kind, key)
                pause = self._cluster.backoff.seconds(failures + 1)
                if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                    pause = min(pause, CONCURRENT_TRANSACTIONS_SECONDS)
            await asyncio.sleep(pause)
            failures += 1

    # ---- failing

    def _fail(self, error: KafkaError) -> KafkaError:
        """Change the state after an error, and return the error to raise."""
        if self.state is State.FATAL:
            return self.error or error
        if error.code in _FENCED and (
            error.code is ErrorCode.PRODUCER_FENCED or self.state is not State.ABORTABLE
        ):
            error = ProducerFencedError(
                f"a newer producer has started with transactional.id {self._id!r}; close this one",
                error.code,
            )
            self.state, self.error = State.FATAL, error
        elif error.code in _FATAL or self.state is State.UNINITIALIZED:
            if error.code in _FATAL:
                self.state, self.error = State.FATAL, error
        elif self.state is State.IN_TRANSACTION:
            self.state = State.ABORTABLE
            text = f"the transaction must be aborted: {error}"
            self.error = TransactionAbortableError(text)
            self.error.__cause__ = error
        return (
            error_from(error.code, error.message) if error.code is ErrorCode.TRANSACTION_ABORTABLE else error
        )
