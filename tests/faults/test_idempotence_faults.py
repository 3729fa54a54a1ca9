"""Batches of an idempotent producer that are repeated, overtaken or out of date: none is written twice,
none is left out.

BARNABAS_TEST_BOOTSTRAP=127.0.0.1:port points these tests at another broker: Apache Kafka answers the same."""

import os
import random
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.broker_process import running_broker
from tests.clients.client import wait_until
from tests.faults.transaction_stage import Ends, connected, ends, settled_topic
from tests.support.raw_calls import PRODUCE, Topic, batch_of, produce_batch, produce_request
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import INIT_PRODUCER_ID, NEW, RawTransactional

from barnabas.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
IN_FLIGHT = 5
PER_BATCH = 3


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if FOREIGN_BOOTSTRAP:
        yield FOREIGN_BOOTSTRAP
        return
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap


@pytest.fixture
def client(bootstrap: str) -> Iterator[RawClient]:
    with connected(bootstrap) as client:
        yield client


def new_producer_id(client: RawClient) -> int:
    """Try until it succeeds: Kafka has to allocate a block of ids first."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    producer_ids: list[int] = []

    def is_given() -> bool:
        answer = client.call(INIT_PRODUCER_ID, 5, request)
        producer_ids.append(int(answer.producer_id))
        return not answer.error_code

    wait_until(is_given, "a producer id is given")
    return producer_ids[-1]


def numbered_batch(producer_id: int, number: int) -> bytes:
    """Batch `number` of a producer, each of as many records."""
    values = [b"%d" % (number * PER_BATCH + place) for place in range(PER_BATCH)]
    return batch_of(*values, producer_id=producer_id, producer_epoch=0, base_sequence=number * PER_BATCH)


def answer_to(client: RawClient, topic: Topic, producer_id: int, number: int) -> tuple[int, int]:
    answer = produce_batch(client, topic, numbered_batch(producer_id, number))
    return answer.error_code, answer.base_offset


@pytest.mark.skipif(FOREIGN_BOOTSTRAP is not None, reason="the broker is killed")
@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_five_in_flight_are_repeated_after_the_broker_died(tmp_path: Path, with_signal: int) -> None:
    """Their answers were lost with the connection. In any order of repeats, each is answered with its own
    offset, and the next batch is accepted."""
    with running_broker(tmp_path) as broker:
        with connected(broker.bootstrap) as client:
            topic, producer_id = settled_topic(client), new_producer_id(client)
            for number in range(IN_FLIGHT):
                client.send(PRODUCE, 9, produce_request(topic, numbered_batch(producer_id, number)))
            with connected(broker.bootstrap) as other:
                wait_until(lambda: ends(other, topic).high == IN_FLIGHT * PER_BATCH, "all are written")
        broker.restart(with_signal)
        numbers = list(range(IN_FLIGHT))
        random.Random(25).shuffle(numbers)
        with connected(broker.bootstrap) as client:
            for number in numbers:
                assert answer_to(client, topic, producer_id, number) == (0, number * PER_BATCH)
            assert ends(client, topic) == Ends(15, 15)
            assert answer_to(client, topic, producer_id, IN_FLIGHT) == (0, 15)


def test_a_batch_that_overtook_another_is_refused_until_its_turn(client: RawClient) -> None:
    topic, producer_id = settled_topic(client), new_producer_id(client)
    assert answer_to(client, topic, producer_id, 0) == (0, 0)
    for number in (2, 4, 3):
        assert answer_to(client, topic, producer_id, number) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert ends(client, topic).high == PER_BATCH
    for number in (1, 2, 3, 4):
        assert answer_to(client, topic, producer_id, number) == (0, number * PER_BATCH)


def test_a_repeat_older_than_the_last_five_is_not_written_again(client: RawClient) -> None:
    """Its offset is not known any more, and the answer must not claim another one."""
    topic, producer_id = settled_topic(client), new_producer_id(client)
    for number in range(IN_FLIGHT + 1):
        assert answer_to(client, topic, producer_id, number) == (0, number * PER_BATCH)
    assert answer_to(client, topic, producer_id, 0) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert answer_to(client, topic, producer_id, 1) == (0, PER_BATCH)
    assert ends(client, topic).high == (IN_FLIGHT + 1) * PER_BATCH


def test_a_repeat_with_another_number_of_records_is_refused(client: RawClient) -> None:
    """A batch with the same first sequence but another number of records is not a repeat."""
    topic, producer_id = settled_topic(client), new_producer_id(client)
    assert answer_to(client, topic, producer_id, 0) == (0, 0)
    longer = batch_of(*[b"x"] * (PER_BATCH + 1), producer_id=producer_id, producer_epoch=0, base_sequence=0)
    assert produce_batch(client, topic, longer).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert ends(client, topic).high == PER_BATCH


def test_an_unknown_producer_may_begin_with_any_sequence(client: RawClient) -> None:
    """After a week of silence, or after retention, its sequence cannot be checked (UNKNOWN_PRODUCER_ID is not
    answered any more)."""
    topic, producer_id = settled_topic(client), new_producer_id(client)
    assert answer_to(client, topic, producer_id, 7) == (0, 0)
    assert answer_to(client, topic, producer_id, 9) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_in_a_transaction_of_version_2_the_first_batch_cannot_be_overtaken(client: RawClient) -> None:
    """Each of its transactions begins with sequence 0, so an unknown producer with another sequence is out of
    order."""
    topic = settled_topic(client)
    producer = RawTransactional(client, f"overtaken-{uuid.uuid4()}", NEW)
    producer.init()
    first, second = (producer.produce_frame(topic, value) for value in (b"first", b"second"))

    def code_of(request: object) -> int:
        answer = client.call(PRODUCE, producer.produce_version, request)  # type: ignore[arg-type]
        return int(answer.responses[0].partition_responses[0].error_code)

    assert code_of(second) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [code_of(first), code_of(second)] == [0, 0]
    assert producer.end(True) == 0
    wait_until(lambda: ends(client, topic) == Ends(3, 3), "the transaction has ended")
