"""The state machine for the transactional ids of one partition of `__transaction_state`.

Rule 1: methods decide, and only `apply` changes the state, live and in a replay. Rule 2: the records of a
step are appended and applied before the next decision. So there is no state between two records, and a
prepared transaction is what Kafka calls a pending one.

Two things are not in the log and are lost in a failover: the epoch before the current one (a repeated
InitProducerId is then fenced, as in Kafka), and which markers were written (they are written again)."""

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from barnabas.coordination.step import JournalRecord, Producer, Timer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import OFFSETS_TOPIC, TopicPartition
from barnabas.transactions import ending, markers, starting, views
from barnabas.transactions.batches import FIRST_BATCHED_VERSION, partitions_of, result_of
from barnabas.transactions.metadata import (
    EPOCH_BUMP_VERSION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TIMEOUT_NEVER_MS,
    Transaction,
)
from barnabas.transactions.records import decode, encode, tombstone
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import AT_REST, State
from barnabas.transactions.steps import (
    EXPIRATION,
    NEEDS_PRODUCER_ID,
    MarkersToWrite,
    NoProducerIdError,
    TransactionStep,
    TransactionTimeout,
    timeout_key,
)
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.describe_transactions import TransactionState
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

# The first versions whose clients know PRODUCER_FENCED.
FENCING_INIT_PRODUCER_ID = 4
FENCING_OTHERS = 2
# Tombstones in one step, so that they fit in one batch.
EXPIRED_PER_STEP = 500
# A timeout that needs a new producer id tries again after this time if there is none.
PRODUCER_ID_WAIT_MS = 1_000

_Reply = TypeVar("_Reply")


class TransactionMachine:
    """`producer_ids` returns a new producer id, or None if there is none at the moment."""

    def __init__(
        self,
        settings: TransactionSettings,
        producer_ids: Callable[[], int | None],
        coordinator_epoch: int = 0,
    ) -> None:
        self.settings = settings
        self.coordinator_epoch = coordinator_epoch
        # The feature level may rise while the broker runs.
        self.transaction_version = settings.transaction_version
        self.transactions: dict[str, Transaction] = {}
        self._producer_ids = producer_ids
        # The epoch before the current one of each id. If a step could not be appended, it is the current one,
        # which changes no answer.
        self._last_epochs: dict[str, int] = {}
        # The partitions that still need their marker; no entry before the first answer.
        self._unmarked: dict[str, set[TopicPartition]] = {}

    # -- requests

    def init_producer_id(
        self, request: InitProducerIdRequest, version: int, now_ms: int
    ) -> TransactionStep[InitProducerIdResponse]:
        """For a request with a transactional id. The reply NEEDS_PRODUCER_ID means: get ids and call
        again."""
        try:
            return self._init_producer_id(request, now_ms)
        except NoProducerIdError:
            return TransactionStep(NEEDS_PRODUCER_ID)
        except KafkaError as error:
            code = views.code_for(error, version, FENCING_INIT_PRODUCER_ID)
            return TransactionStep(_init_refusal(code))

    def _init_producer_id(
        self, request: InitProducerIdRequest, now_ms: int
    ) -> TransactionStep[InitProducerIdResponse]:
        starting.check_request(request, self.settings)
        transactional_id = request.transactional_id or ""
        timeout_ms = request.transaction_timeout_ms
        expected = starting.expected_producer(request)
        current = self.transactions.get(transactional_id)
        if current is None:
            current = Transaction(self._fresh_producer_id(), timeout_ms, now_ms)
        starting.check_right_to_start(current, expected)
        if current.state is State.ONGOING:
            return self._fence(
                transactional_id, current, _init_refusal(ErrorCode.CONCURRENT_TRANSACTIONS), now_ms
            )
        last_epoch = self._last_epochs.get(transactional_id, NO_EPOCH)
        after, before = starting.started(
            current, expected, last_epoch, self._fresh_producer_id, timeout_ms, now_ms
        )
        self._last_epochs[transactional_id] = before
        return TransactionStep(
            InitProducerIdResponse(producer_id=after.producer_id, producer_epoch=after.epoch),
            [self._record(transactional_id, after)],
        )

    def add_partitions(
        self, request: AddPartitionsToTxnTransaction, version: int, now_ms: int
    ) -> TransactionStep[AddPartitionsToTxnResult]:
        """One transaction of AddPartitionsToTxn; batches.py converts requests and answers."""
        if request.verify_only:
            return self._verify(request)
        producer = Producer(request.producer_id, request.producer_epoch)
        client_version = EPOCH_BUMP_VERSION if version >= FIRST_BATCHED_VERSION else 0
        step = self._add(
            request.transactional_id, producer, partitions_of(request), (client_version, version), now_ms
        )
        return _with_reply(step, result_of(request, lambda partition: step.reply))

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, version: int, offsets_partition: int, now_ms: int
    ) -> TransactionStep[AddOffsetsToTxnResponse]:
        """Add the partition of `__consumer_offsets` that has the offsets of the request's group."""
        producer = Producer(request.producer_id, request.producer_epoch)
        added = frozenset({TopicPartition(OFFSETS_TOPIC, offsets_partition)})
        step = self._add(request.transactional_id, producer, added, (0, version), now_ms)
        return _with_reply(step, AddOffsetsToTxnResponse(error_code=step.reply))

    def end_txn(self, request: EndTxnRequest, version: int, now_ms: int) -> TransactionStep[EndTxnResponse]:
        """The reply NEEDS_PRODUCER_ID means: get ids and call again."""
        try:
            return self._end_txn(request, ending.client_version_of(version), now_ms)
        except NoProducerIdError:
            return TransactionStep(NEEDS_PRODUCER_ID)
        except KafkaError as error:
            return TransactionStep(EndTxnResponse(error_code=views.code_for(error, version, FENCING_OTHERS)))

    def _end_txn(
        self, request: EndTxnRequest, client_version: int, now_ms: int
    ) -> TransactionStep[EndTxnResponse]:
        transactional_id = request.transactional_id
        current = self._known(transactional_id)
        if client_version < EPOCH_BUMP_VERSION:
            prepared = ending.ended_by_client_1(current, request, now_ms)
            if prepared is None:
                return TransactionStep(EndTxnResponse())
            return self._end(transactional_id, prepared, EndTxnResponse(), now_ms)
        prepared = ending.ended_by_client_2(current, request, self._fresh_producer_id, now_ms)
        after = current if prepared is None else prepared.completed(now_ms)
        reply = EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)
        if prepared is None:
            return TransactionStep(reply)
        self._last_epochs[transactional_id] = current.epoch
        return self._end(transactional_id, prepared, reply, now_ms)

    def describe(self, transactional_id: str) -> TransactionStep[TransactionState]:
        return TransactionStep(views.described(transactional_id, self.transactions.get(transactional_id)))

    def list_transactions(self, filters: views.Filters, now_ms: int) -> TransactionStep[views.Listed]:
        """`views.merged` makes one answer from those of all shards."""
        return TransactionStep(views.listed(self.transactions, filters, now_ms))

    # -- markers

    def markers_written(
        self, written: MarkersToWrite, results: Mapping[TopicPartition, ErrorCode], now_ms: int
    ) -> TransactionStep[MarkersToWrite | None]:
        """Take the answers of partition leaders. The reply has the markers to write again, or is None.

        A partition that does not exist any more needs no marker: pass NONE for it. A call without results
        only completes the transaction if all markers are written, after an earlier step could not be
        appended."""
        transaction = self.transactions.get(written.transactional_id)
        if transaction is None or not self._is_about(written, transaction):
            return TransactionStep(None)
        unmarked = self._unmarked.setdefault(written.transactional_id, set(transaction.partitions))
        unmarked -= markers.finished(results)
        if markers.is_superseded(written.transactional_id, results):
            return TransactionStep(None)
        if not unmarked:
            completed = transaction.completed(now_ms)
            return TransactionStep(None, [self._record(written.transactional_id, completed)])
        again = written.partitions & unmarked if results else frozenset(unmarked)
        return TransactionStep(written._replace(partitions=again) if again else None)

    def _is_about(self, written: MarkersToWrite, transaction: Transaction) -> bool:
        return (
            transaction.is_prepared
            and written.coordinator_epoch == self.coordinator_epoch
            and (written.producer_id, written.producer_epoch) == (transaction.producer_id, transaction.epoch)
        )

    # -- the machine

    def apply(self, record: JournalRecord, producer: Producer | None = None) -> None:
        entry = decode(record)
        if entry is None:
            return
        transactional_id, transaction = entry
        self._unmarked.pop(transactional_id, None)
        if transaction is not None:
            self.transactions[transactional_id] = transaction
        else:
            self.transactions.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)

    def apply_marker(self, producer: Producer, is_commit: bool) -> None:
        """Transactions of clients have no records in this topic, so their ends change nothing."""

    def loaded(self, now_ms: int) -> TransactionStep[None]:
        """Timeouts continue. Prepared transactions get their markers, even if they were written before."""
        step: TransactionStep[None] = TransactionStep(None)
        for transactional_id, transaction in self.transactions.items():
            if transaction.is_prepared:
                step.markers.append(self._markers(transactional_id, transaction))
            elif transaction.state is State.ONGOING:
                left_ms = transaction.start_ms + transaction.timeout_ms - now_ms
                # The clocks of brokers differ, but no transaction gets more than its timeout.
                delay_ms = min(max(left_ms, 0), transaction.timeout_ms)
                step.timers += _timeout(transactional_id, transaction, delay_ms)
        step.timers.append(Timer(EXPIRATION, self.settings.expiration_check_ms))
        return step

    def lapse(self, key: Hashable, now_ms: int) -> TransactionStep[None]:
        if isinstance(key, TransactionTimeout):
            return self._time_out(key, now_ms)
        return self._expire(now_ms) if key == EXPIRATION else TransactionStep(None)

    def _time_out(self, key: TransactionTimeout, now_ms: int) -> TransactionStep[None]:
        current = self.transactions.get(key.transactional_id)
        if (
            current is None
            or current.state is not State.ONGOING
            or timeout_key(key.transactional_id, current) != key
        ):
            return TransactionStep(None)
        try:
            return self._fence(key.transactional_id, current, None, now_ms)
        except NoProducerIdError:
            return TransactionStep(None, timers=[Timer(key, PRODUCER_ID_WAIT_MS)])

    def _expire(self, now_ms: int) -> TransactionStep[None]:
        last_ms = now_ms - self.settings.expiration_ms
        expired = [
            transactional_id
            for transactional_id, transaction in self.transactions.items()
            if transaction.state in AT_REST and transaction.update_ms <= last_ms
        ]
        has_more = len(expired) > EXPIRED_PER_STEP
        return TransactionStep(
            None,
            [tombstone(transactional_id) for transactional_id in expired[:EXPIRED_PER_STEP]],
            timers=[Timer(EXPIRATION, 0 if has_more else self.settings.expiration_check_ms)],
        )

    # -- decisions that several calls share

    def _verify(self, request: AddPartitionsToTxnTransaction) -> TransactionStep[AddPartitionsToTxnResult]:
        try:
            current = self._known(request.transactional_id)
            _check_producer(current, Producer(request.producer_id, request.producer_epoch))
            if current.is_prepared:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        except KafkaError as error:
            code = error.code
            return TransactionStep(result_of(request, lambda partition: code))

        def code_of(partition: TopicPartition) -> ErrorCode:
            return ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE

        return TransactionStep(result_of(request, code_of))

    def _add(
        self,
        transactional_id: str,
        producer: Producer,
        added: frozenset[TopicPartition],
        versions: tuple[int, int],
        now_ms: int,
    ) -> TransactionStep[ErrorCode]:
        """`versions`: the client's transaction version and that of the request."""
        client_version, version = versions
        try:
            current = self._known(transactional_id)
            if current.is_prepared:
                # This check comes first, because a client whose id is used up already sends the next id.
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            _check_producer(current, producer)
        except KafkaError as error:
            return TransactionStep(views.code_for(error, version, FENCING_OTHERS))
        if current.state is State.ONGOING and added <= current.partitions:
            return TransactionStep(ErrorCode.NONE)
        after = current.with_partitions(added, client_version, now_ms)
        begins = current.state is not State.ONGOING
        return TransactionStep(
            ErrorCode.NONE,
            [self._record(transactional_id, after)],
            timers=_timeout(transactional_id, after, after.timeout_ms) if begins else [],
        )

    def _fence(
        self, transactional_id: str, current: Transaction, reply: _Reply, now_ms: int
    ) -> TransactionStep[_Reply]:
        """Abort an ongoing transaction, and fence its producer."""
        prepared = ending.ended_by_coordinator(
            current, self.transaction_version, self._fresh_producer_id, now_ms
        )
        bumps = prepared.client_version >= EPOCH_BUMP_VERSION
        self._last_epochs[transactional_id] = current.epoch if bumps else NO_EPOCH
        return self._end(transactional_id, prepared, reply, now_ms)

    def _end(
        self, transactional_id: str, prepared: Transaction, reply: _Reply, now_ms: int
    ) -> TransactionStep[_Reply]:
        current = self.transactions[transactional_id]
        step = TransactionStep(reply, [self._record(transactional_id, prepared)])
        if current.state is State.ONGOING:
            step.cancelled.append(timeout_key(transactional_id, current))
        if prepared.partitions:
            step.markers.append(self._markers(transactional_id, prepared))
        else:
            step.records.append(self._record(transactional_id, prepared.completed(now_ms)))
        return step

    def _markers(self, transactional_id: str, prepared: Transaction) -> MarkersToWrite:
        return MarkersToWrite(
            transactional_id,
            prepared.producer_id,
            prepared.epoch,
            self.coordinator_epoch,
            prepared.is_commit,
            prepared.partitions,
            prepared.client_version,
        )

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    def _record(self, transactional_id: str, transaction: Transaction) -> JournalRecord:
        return encode(transactional_id, transaction, self.transaction_version)

    def _fresh_producer_id(self) -> int:
        producer_id = self._producer_ids()
        if producer_id is None:
            raise NoProducerIdError
        return producer_id


def _check_producer(current: Transaction, producer: Producer) -> None:
    if current.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _timeout(transactional_id: str, transaction: Transaction, delay_ms: int) -> list[Timer]:
    if transaction.timeout_ms == TIMEOUT_NEVER_MS:
        return []
    return [Timer(timeout_key(transactional_id, transaction), delay_ms)]


def _init_refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


def _with_reply(step: TransactionStep[ErrorCode], reply: _Reply) -> TransactionStep[_Reply]:
    return TransactionStep(reply, step.records, timers=step.timers)
