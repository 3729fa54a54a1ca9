"""A partition takes a transactional batch only as a part of the producer's open transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.transaction_verification import ensure_in_transaction
from barnabas.broker.turns import run_in_turns
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TRANSACTIONS_TOPIC, TopicPartition
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.transactions.batches import result_of
from barnabas.transactions.steps import MarkersToWrite
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

ID = "payments"
PLACE = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def started(make_stage: Any, **properties: str) -> Any:
    stage = make_stage(transaction_state_log_num_partitions="1", **properties)
    stage.create(PLACE.topic, partitions=2)
    stage.run(stage.start_coordinators())
    stage.run(stage.transactions.ensure_topic())
    return stage


@pytest.fixture
def stage(make_stage: Any) -> Any:
    return started(make_stage)


def new_producer(stage: Any) -> Producer:
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
    answer = stage.ask(request, 4)
    return Producer(answer.producer_id, answer.producer_epoch)


def end(stage: Any, producer: Producer) -> Producer:
    """Commit with the version that gives a new epoch; returns the producer with its new epoch."""
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer.id, producer_epoch=producer.epoch, committed=True
    )
    answer = stage.ask(request, 5)
    assert answer.error_code == ErrorCode.NONE
    return Producer(answer.producer_id, answer.producer_epoch)


def check(
    stage: Any,
    producer: Producer,
    place: TopicPartition = PLACE,
    *,
    adds: bool = False,
    transactional_id: str | None = ID,
) -> ErrorCode:
    """The code with which a partition accepts or refuses a batch of the producer."""
    code: ErrorCode = stage.run(_code(stage, transactional_id, producer, place, adds))
    return code


def begin_check(stage: Any, producer: Producer, *, adds: bool) -> asyncio.Task[ErrorCode]:
    return asyncio.ensure_future(_code(stage, ID, producer, PLACE, adds))


async def _code(
    stage: Any, transactional_id: str | None, producer: Producer, place: TopicPartition, adds: bool
) -> ErrorCode:
    try:
        await run_in_turns(ensure_in_transaction(stage, transactional_id, producer, place, adds=adds))
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def append(stage: Any, producer: Producer) -> None:
    stage.append(
        PLACE.topic,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        transactional=True,
    )


def partitions(stage: Any) -> frozenset[TopicPartition]:
    added: frozenset[TopicPartition] = stage.transactions.shard_of(ID).machine.transactions[ID].partitions
    return added


def move_coordinator(stage: Any, **changes: Any) -> None:
    partition = stage.replicas.get(TRANSACTIONS_TOPIC, 0)
    stage.place(partition, **{"leader_epoch": partition.leader_epoch + 1, **changes})
    stage.follow_coordinators()


# ---- is it in the transaction?


def test_a_partition_that_was_not_added_is_refused(stage: Any) -> None:
    producer = new_producer(stage)
    assert check(stage, producer) == ErrorCode.TRANSACTION_ABORTABLE
    assert partitions(stage) == frozenset()


def test_a_partition_that_was_added_is_accepted_and_no_other(stage: Any) -> None:
    producer = new_producer(stage)
    assert check(stage, producer, adds=True) == ErrorCode.NONE
    assert partitions(stage) == {PLACE}
    assert check(stage, producer) == ErrorCode.NONE
    assert check(stage, producer, OTHER) == ErrorCode.TRANSACTION_ABORTABLE


def test_a_batch_that_comes_after_the_end_of_its_transaction_is_refused(stage: Any) -> None:
    producer = new_producer(stage)
    check(stage, producer, adds=True)
    append(stage, producer)
    later = end(stage, producer)
    assert check(stage, producer, adds=True) == ErrorCode.PRODUCER_FENCED
    assert check(stage, producer) == ErrorCode.PRODUCER_FENCED
    assert check(stage, later) == ErrorCode.TRANSACTION_ABORTABLE
    assert check(stage, later, adds=True) == ErrorCode.NONE


def test_only_the_producer_that_has_the_transactional_id_is_accepted(stage: Any) -> None:
    producer = new_producer(stage)
    other = Producer(producer.id + 1, 0)
    for adds in (True, False):
        assert check(stage, other, adds=adds) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        older = Producer(producer.id, producer.epoch - 1)
        assert check(stage, older, adds=adds) == ErrorCode.PRODUCER_FENCED
        unknown = check(stage, producer, adds=adds, transactional_id="another")
        assert unknown == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("transactional_id", [None, ""])
def test_a_batch_without_a_transactional_id_is_refused(stage: Any, transactional_id: str | None) -> None:
    producer = new_producer(stage)
    assert check(stage, producer, transactional_id=transactional_id) == ErrorCode.INVALID_REQUEST


# ---- when the coordinator is not needed, or not there


def test_a_partition_with_records_of_the_open_transaction_needs_no_coordinator(stage: Any) -> None:
    producer = new_producer(stage)
    check(stage, producer, adds=True)
    append(stage, producer)
    move_coordinator(stage, leader=2)
    assert check(stage, producer) == ErrorCode.NONE
    newer = Producer(producer.id, producer.epoch + 1)
    assert check(stage, newer) == ErrorCode.NOT_COORDINATOR, "that transaction is another one"


def test_a_coordinator_that_loads_or_moved_cannot_verify(stage: Any) -> None:
    producer = new_producer(stage)

    async def while_loading() -> ErrorCode:
        move_coordinator(stage)
        with pytest.raises(KafkaError) as refused:
            await run_in_turns(ensure_in_transaction(stage, ID, producer, PLACE, adds=True))
        return refused.value.code

    assert stage.run(while_loading()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    async def loaded() -> None:
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not stage.transactions.is_loading

    stage.run(loaded())
    assert check(stage, producer, adds=True) == ErrorCode.NONE
    move_coordinator(stage, leader=2)
    assert check(stage, producer, OTHER, adds=True) == ErrorCode.NOT_COORDINATOR


def test_a_partition_that_is_led_elsewhere_takes_nothing(stage: Any) -> None:
    producer = new_producer(stage)
    stage.place(stage.replicas.get(*PLACE), leader=2)
    assert check(stage, producer, adds=True) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partitions(stage) == frozenset()


def test_a_partition_counts_as_added_when_that_is_committed(stage: Any) -> None:
    producer = new_producer(stage)
    journal = stage.replicas.get(TRANSACTIONS_TOPIC, 0)

    async def story() -> None:
        stage.place(journal, isr=(1, 2))
        checking = begin_check(stage, producer, adds=True)
        await asyncio.sleep(0.01)
        assert not checking.done()
        stage.place(journal, isr=(1,))
        assert await checking == ErrorCode.NONE

    stage.run(story())
    assert check(stage, producer) == ErrorCode.NONE


# ---- what happens while the coordinator is asked


def test_a_marker_that_is_written_during_the_check_makes_its_result_worthless(stage: Any) -> None:
    producer = new_producer(stage)
    journal = stage.replicas.get(TRANSACTIONS_TOPIC, 0)

    async def story() -> None:
        stage.place(journal, isr=(1, 2))
        checking = begin_check(stage, producer, adds=True)
        await asyncio.sleep(0.01)
        ending = MarkersToWrite(ID, producer.id, producer.epoch + 1, 0, False, frozenset({PLACE}), 2)
        assert await stage.transactions.write_marker(PLACE, ending) == ErrorCode.NONE
        stage.place(journal, isr=(1,))
        assert await checking == ErrorCode.INVALID_TXN_STATE

    stage.run(story())
    assert not stage.replicas.get(*PLACE).log.producers.verifying, "nothing is left of the check"


def test_a_partition_that_moves_during_the_check_takes_nothing(stage: Any) -> None:
    producer = new_producer(stage)
    journal = stage.replicas.get(TRANSACTIONS_TOPIC, 0)
    partition = stage.replicas.get(*PLACE)

    async def story(**changes: int) -> None:
        stage.place(journal, isr=(1, 2))
        checking = begin_check(stage, producer, adds=True)
        await asyncio.sleep(0.01)
        stage.place(partition, **changes)
        stage.place(journal, isr=(1,))
        assert await checking == ErrorCode.NOT_LEADER_OR_FOLLOWER

    stage.run(story(leader=2))
    stage.place(partition, leader=1)


def test_two_checks_of_one_producer_do_not_end_each_other(stage: Any) -> None:
    producer = new_producer(stage)
    journal = stage.replicas.get(TRANSACTIONS_TOPIC, 0)

    async def story() -> None:
        stage.place(journal, isr=(1, 2))
        checks = [begin_check(stage, producer, adds=True) for _ in range(2)]
        await asyncio.sleep(0.01)
        stage.place(journal, isr=(1,))
        assert await asyncio.gather(*checks) == [ErrorCode.NONE, ErrorCode.NONE]

    stage.run(story())


# ---- a coordinator on another broker


class Peer:
    """Another broker that coordinates: it answers AddPartitionsToTxn with a given code or error."""

    def __init__(self, answer: ErrorCode | KafkaError) -> None:
        self._answer = answer
        self.requests: list[tuple[int, Any]] = []

    async def send(self, broker_id: int, api_key: int, message: Any, **_: Any) -> Any:
        assert api_key == 24
        self.requests.append((broker_id, message))
        await asyncio.sleep(0)
        if isinstance(self._answer, KafkaError):
            raise self._answer
        code = self._answer
        results = [result_of(transaction, lambda _: code) for transaction in message.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=results)


def with_coordinator_elsewhere(stage: Any, peer: Peer) -> None:
    topic = stage.image.topic(TRANSACTIONS_TOPIC)
    stage.write(PartitionChangeRecord(topic.id, 0, leader=2))
    stage.peers = peer


@pytest.mark.parametrize(
    "answer, code",
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
@pytest.mark.parametrize("adds", [True, False])
def test_a_coordinator_on_another_broker_is_asked(
    stage: Any, answer: ErrorCode | KafkaError, code: ErrorCode, adds: bool
) -> None:
    producer = new_producer(stage)
    peer = Peer(answer)
    with_coordinator_elsewhere(stage, peer)
    assert check(stage, producer, adds=adds) == code
    ((broker_id, request),) = peer.requests
    (transaction,) = request.transactions
    assert broker_id == 2
    assert transaction.verify_only is not adds
    assert (transaction.producer_id, transaction.producer_epoch) == (producer.id, producer.epoch)


def test_without_a_leader_of_the_coordinators_partition_nobody_can_verify(stage: Any) -> None:
    producer = new_producer(stage)
    topic = stage.image.topic(TRANSACTIONS_TOPIC)
    stage.write(PartitionChangeRecord(topic.id, 0, leader=-1))
    assert check(stage, producer, adds=True) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_while_markers_are_written_the_next_transaction_waits(stage: Any) -> None:
    producer = new_producer(stage)
    check(stage, producer, adds=True)
    stage.place(stage.replicas.get(*PLACE), leader=2)
    later = end(stage, producer)
    for adds in (True, False):
        code = check(stage, later, OTHER, adds=adds)
        assert code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_without_verification_only_additions_are_checked(make_stage: Any) -> None:
    stage = started(make_stage, transaction_partition_verification_enable="false")
    producer = new_producer(stage)
    assert check(stage, producer) == ErrorCode.NONE
    assert partitions(stage) == frozenset()
    assert check(stage, Producer(producer.id + 1, 0), adds=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
