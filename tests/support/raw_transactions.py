"""The calls of one transactional producer over a raw connection: any version, without automatic steps."""

import time
from typing import Any

from tests.support.raw_calls import PRODUCE, Topic, batch_of, produce_request
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    find_coordinator,
    init_producer_id,
    txn_offset_commit,
)

FIND_COORDINATOR, INIT_PRODUCER_ID = 10, 22
ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 24, 25, 26, 28
TRANSACTION = 1
# Versions of a client of transaction version 1, and of version 2.
OLD, NEW = 1, 2
PRODUCE_VERSIONS = {OLD: 11, NEW: 12}
END_VERSIONS = {OLD: 4, NEW: 5}
TXN_OFFSET_COMMIT_VERSIONS = {OLD: 3, NEW: 5}
COME_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
PATIENCE_SECONDS = 20.0


class RawTransactional:
    def __init__(self, client: RawClient, name: str, transaction_version: int = NEW) -> None:
        self.client = client
        self.name = name
        self.transaction_version = transaction_version
        self.id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}

    def find(self) -> None:
        """Ask for the coordinator, which also creates the internal topic."""
        request = find_coordinator.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.name])
        self.client.call(FIND_COORDINATOR, 6, request)

    def init(self, timeout_ms: int = 60_000) -> None:
        """Find the coordinator and initialize the transactional id; retries until it succeeds."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.find()
            answer = self.try_init(timeout_ms)
            if answer.error_code not in COME_AGAIN:
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"InitProducerId still answers {answer.error_code}")
            time.sleep(0.01)
        if answer.error_code:
            raise RuntimeError(f"InitProducerId answered {answer.error_code}")
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()

    def try_init(self, timeout_ms: int = 60_000, version: int = 5, **had: Any) -> Any:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=timeout_ms, **had
        )
        return self.client.call(INIT_PRODUCER_ID, version, request)

    # ---- adding

    def add(self, topic: Topic, partition: int = 0, version: int = 3) -> int:
        """As clients do it, up to version 3."""
        named = add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic.name, partitions=[partition])
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[named],
        )
        (result,) = self.client.call(ADD_PARTITIONS_TO_TXN, version, request).results_by_topic_v3_and_below
        return int(result.results_by_partition[0].partition_error_code)

    def produce_frame(self, topic: Topic, value: bytes, partition: int = 0) -> Any:
        """The request with the next sequence number, whether it is sent or not."""
        place = (topic.name, partition)
        sequence = self.sequences.get(place, 0)
        self.sequences[place] = sequence + 1
        batch = batch_of(
            value,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = produce_request(topic, batch, partition=partition)
        request.transactional_id = self.name
        return request

    @property
    def produce_version(self) -> int:
        return PRODUCE_VERSIONS[self.transaction_version]

    def produce(self, topic: Topic, value: bytes, partition: int = 0) -> int:
        """In the transaction; with version 1 the partition must have been added before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        request = self.produce_frame(topic, value, partition)
        while True:
            response = self.client.call(PRODUCE, self.produce_version, request)
            code = int(response.responses[0].partition_responses[0].error_code)
            if code not in COME_AGAIN or time.monotonic() > deadline:
                return code
            time.sleep(0.01)

    def add_offsets(self, group: str) -> int:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id=group
        )
        return int(self.client.call(ADD_OFFSETS_TO_TXN, 3, request).error_code)

    def commit_offset(self, group: str, topic: Topic, offset: int, **member: Any) -> int:
        version = TXN_OFFSET_COMMIT_VERSIONS[self.transaction_version]
        request = self.offset_frame(group, topic, offset, **member)
        response = self.client.call(TXN_OFFSET_COMMIT, version, request)
        return int(response.topics[0].partitions[0].error_code)

    def offset_frame(
        self, group: str, topic: Topic, offset: int, **member: Any
    ) -> txn_offset_commit.TxnOffsetCommitRequest:
        """The request for partition 0, whether it is sent or not."""
        partition = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset
        )
        named = txn_offset_commit.TxnOffsetCommitRequestTopic(name=topic.name, partitions=[partition])
        return txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[named],
            **member,
        )

    # ---- ending

    def end_frame(self, commit: bool) -> end_txn.EndTxnRequest:
        return end_txn.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit
        )

    @property
    def end_version(self) -> int:
        return END_VERSIONS[self.transaction_version]

    def end(self, commit: bool) -> int:
        """Takes the next epoch where the answer gives one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self.client.call(END_TXN, self.end_version, self.end_frame(commit))
            if answer.error_code not in COME_AGAIN or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        if not answer.error_code and answer.producer_id >= 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)
