"""A transaction machine with a journal: every step is journaled and applied, as in the runtime."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.records import encode
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.steps import MarkersToWrite, TransactionStep
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

TIMEOUT_MS = 60_000
PARTITION = TopicPartition("orders", 0)


class Story:
    """Answers are error codes; the whole answer is `step.reply`."""

    def __init__(self, transaction_version: int = 2, **settings: Any) -> None:
        self.settings = TransactionSettings(transaction_version=transaction_version, **settings)
        self.journal: list[JournalRecord] = []
        self.now_ms = 1_000_000
        self.next_id = 4000
        self.has_ids = True
        self.machine = TransactionMachine(self.settings, self.producer_id, coordinator_epoch=5)
        self.step: TransactionStep[Any] = TransactionStep(None)
        self.markers: list[MarkersToWrite] = []

    def producer_id(self) -> int | None:
        if not self.has_ids:
            return None
        self.next_id += 1
        return self.next_id - 1

    def run(self, step: TransactionStep[Any]) -> Any:
        self.step = step
        self.journal += step.records
        for record in step.records:
            self.machine.apply(record, None)
        self.markers += step.markers
        self.now_ms += 1
        return step.reply

    def put(self, transaction: Transaction, transactional_id: str = "tx") -> None:
        """Apply a record, as if it were in the journal."""
        record = encode(transactional_id, transaction, self.machine.transaction_version)
        self.journal.append(record)
        self.machine.apply(record)

    def transaction(self, transactional_id: str = "tx") -> Transaction:
        return self.machine.transactions[transactional_id]

    def init(self, producer: tuple[int, int] = (-1, -1), version: int = 5, **fields: Any) -> ErrorCode:
        values = {"transactional_id": "tx", "transaction_timeout_ms": TIMEOUT_MS, **fields}
        request = InitProducerIdRequest(producer_id=producer[0], producer_epoch=producer[1], **values)
        return self._code(self.run(self.machine.init_producer_id(request, version, self.now_ms)))

    def given(self) -> tuple[int, int]:
        """The producer id and epoch of the last answer."""
        return self.step.reply.producer_id, self.step.reply.producer_epoch

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        version: int = 4,
        verify_only: bool = False,
        transactional_id: str = "tx",
    ) -> ErrorCode:
        topics = [
            AddPartitionsToTxnTopic(name=topic, partitions=[partition])
            for topic, partition in partitions or [PARTITION]
        ]
        request = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=topics,
        )
        result = self.run(self.machine.add_partitions(request, version, self.now_ms))
        codes = {
            partition.partition_error_code
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        assert len(codes) == 1
        return ErrorCode(codes.pop())

    def add_offsets(self, producer: tuple[int, int], offsets_partition: int, version: int = 4) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], group_id="readers"
        )
        step = self.machine.add_offsets(request, version, offsets_partition, self.now_ms)
        return self._code(self.run(step))

    def end(
        self, producer: tuple[int, int], *, commit: bool, version: int = 5, transactional_id: str = "tx"
    ) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        return self._code(self.run(self.machine.end_txn(request, version, self.now_ms)))

    def write_markers(self, code: ErrorCode = ErrorCode.NONE) -> MarkersToWrite | None:
        """All partitions answer the oldest marker with this code."""
        markers = self.markers.pop(0)
        results = dict.fromkeys(markers.partitions, code)
        again: MarkersToWrite | None = self.run(self.machine.markers_written(markers, results, self.now_ms))
        return again

    def fail_over(self) -> None:
        """Another coordinator replays the journal."""
        self.machine = TransactionMachine(
            self.settings, self.producer_id, coordinator_epoch=self.machine.coordinator_epoch + 1
        )
        for record in self.journal:
            self.machine.apply(record, None)
        self.markers = []
        self.run(self.machine.loaded(self.now_ms))

    @staticmethod
    def _code(reply: Any) -> Any:
        return ErrorCode(reply.error_code) if hasattr(reply, "error_code") else reply


@pytest.fixture
def new_story() -> Callable[..., Story]:
    return Story


@pytest.fixture
def story() -> Story:
    """A cluster with transaction version 2, without producers."""
    return Story()


@pytest.fixture
def old_story() -> Story:
    """A cluster with transaction version 1."""
    return Story(transaction_version=1)
