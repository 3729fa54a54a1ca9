"""Pitfall 18: transactions, as clients of version 1 and of version 2 (an epoch per transaction) use them.

Apache Kafka passes too: it may answer before it knows a new topic, and it writes markers after EndTxn is
answered, so conditions are waited for."""

import uuid
from typing import Any

import pytest
from tests.clients.client import wait_until
from tests.support.raw_calls import (
    FETCH,
    PRODUCE,
    Topic,
    batch_of,
    fetch_request,
    list_offset,
    new_topic,
    produce_batch,
    produce_request,
)
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import COME_AGAIN, END_TXN, NEW, OLD, RawTransactional

from barnabas.errors import ErrorCode
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

API_VERSIONS, INIT_PRODUCER_ID = 18, 22
LATEST = -1
READ_COMMITTED = 1


@pytest.fixture
def topic(client: RawClient) -> Topic:
    """One partition that has a leader."""
    made = new_topic(client)
    wait_until(lambda: list_offset(client, made, LATEST).error_code == 0, "the new topic has a leader")
    return made


@pytest.fixture(params=[OLD, NEW], ids=["version 1", "version 2"])
def producer(request: pytest.FixtureRequest, client: RawClient) -> RawTransactional:
    transactional = RawTransactional(client, f"payments-{uuid.uuid4()}", request.param)
    transactional.init()
    return transactional


def answered(client: RawClient, api_key: int, version: int, request: Message) -> Any:
    """The first answer without a retriable error."""
    answers: list[Any] = []

    def has_answered() -> bool:
        answers.append(client.call(api_key, version, request))
        return answers[-1].error_code not in COME_AGAIN

    wait_until(has_answered, "the coordinator is ready")
    return answers[-1]


def stable_end(client: RawClient, topic: Topic) -> int:
    return list_offset(client, topic, LATEST, isolation_level=READ_COMMITTED).offset


@pytest.mark.parametrize("version", range(6))
def test_18_idempotence_without_a_transaction_is_served(client: RawClient, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    first, second = (answered(client, INIT_PRODUCER_ID, version, request) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id > first.producer_id >= 0


def test_18_the_feature_that_version_2_needs_is_finalized(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    features = client.call(API_VERSIONS, 4, request).finalized_features
    levels = {feature.name: feature.max_version_level for feature in features}
    assert (levels["transaction.version"], levels["group.version"]) == (2, 1)


def test_18_a_timeout_above_the_limit_is_refused(producer: RawTransactional) -> None:
    answer = producer.try_init(timeout_ms=900_001)
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("compression", [0, 1])
def test_18_a_batch_of_a_transaction_that_was_not_started_is_refused_and_not_written(
    client: RawClient, topic: Topic, version: int, compression: int
) -> None:
    batch = batch_of(
        b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True, compression=compression
    )
    request = produce_request(topic, batch)
    request.transactional_id = f"nobody-{uuid.uuid4()}"
    answer = client.call(PRODUCE, version, request).responses[0].partition_responses[0]
    assert answer.error_code != 0
    assert answer.base_offset == -1
    assert list_offset(client, topic, LATEST).offset == 0


@pytest.mark.parametrize("commits", [True, False])
def test_18_records_of_open_or_aborted_transactions_are_not_committed(
    client: RawClient, topic: Topic, producer: RawTransactional, commits: bool
) -> None:
    if producer.transaction_version == OLD:
        assert producer.add(topic) == 0
    assert producer.produce(topic, b"a") == 0
    request = fetch_request(topic)
    request.isolation_level = READ_COMMITTED
    request.max_wait_ms = 0
    undecided = client.call(FETCH, 12, request).responses[0].partitions[0]
    assert (undecided.last_stable_offset, undecided.high_watermark, len(undecided.records)) == (0, 1, 0)
    writer = producer.id
    assert producer.end(commits) == 0
    wait_until(lambda: stable_end(client, topic) == 2, "the marker is written")
    decided = client.call(FETCH, 12, request).responses[0].partitions[0]
    assert (decided.last_stable_offset, decided.high_watermark) == (2, 2)
    aborted = [(entry.producer_id, entry.first_offset) for entry in decided.aborted_transactions]
    assert aborted == ([] if commits else [(writer, 0)])


def test_18_a_partition_of_an_old_client_must_be_added_first(client: RawClient, topic: Topic) -> None:
    producer = RawTransactional(client, f"payments-{uuid.uuid4()}", OLD)
    producer.init()
    assert producer.produce(topic, b"a") == ErrorCode.TRANSACTION_ABORTABLE
    assert list_offset(client, topic, LATEST).offset == 0


def test_18_a_new_producer_with_the_same_id_fences_the_old_one(
    client: RawClient, topic: Topic, producer: RawTransactional
) -> None:
    if producer.transaction_version == OLD:
        assert producer.add(topic) == 0
    assert producer.produce(topic, b"zombie") == 0
    heir = RawTransactional(client, producer.name, producer.transaction_version)
    heir.init()
    assert (heir.id, heir.epoch > producer.epoch) == (producer.id, True)
    assert producer.produce(topic, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(True) == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("version", range(6))
def test_18_the_end_of_an_unknown_transaction_is_refused_in_every_version(
    client: RawClient, version: int
) -> None:
    nobody = RawTransactional(client, f"nobody-{uuid.uuid4()}")
    nobody.find()
    request = EndTxnRequest(transactional_id=nobody.name, producer_id=1, producer_epoch=0, committed=True)
    assert answered(client, END_TXN, version, request).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_18_version_2_raises_the_epoch_with_every_transaction(client: RawClient, topic: Topic) -> None:
    producer = RawTransactional(client, f"payments-{uuid.uuid4()}", NEW)
    producer.init()
    epochs = [producer.epoch]
    for _ in range(3):
        assert producer.produce(topic, b"a") == 0
        assert producer.end(True) == 0
        epochs.append(producer.epoch)
    assert epochs == list(range(epochs[0], epochs[0] + 4))


def test_18_read_committed_reads_records_outside_transactions(client: RawClient, topic: Topic) -> None:
    produce_batch(client, topic, batch_of(b"a", b"b"))
    request = fetch_request(topic)
    request.isolation_level = READ_COMMITTED
    partition = client.call(FETCH, 12, request).responses[0].partitions[0]
    assert (partition.last_stable_offset, partition.aborted_transactions) == (2, [])
    assert len(partition.records) > 0


@pytest.mark.parametrize("version", [9, 12])
def test_18_clients_may_not_write_to_the_topics_of_coordinators(
    client: RawClient, producer: RawTransactional, version: int
) -> None:
    """One wrong record there would make every restart fail."""
    internal = Topic("__transaction_state", b"")
    answer = produce_batch(client, internal, batch_of(b"junk"), version=version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    if producer.transaction_version == OLD:
        assert producer.add(internal) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
