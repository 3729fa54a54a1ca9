"""Requests of a transaction that arrive after its end, because a proxy or TCP delayed them.

Version 2 clients have an epoch for each transaction, so nothing late can touch a later one. Version 1 clients
keep theirs: a late record cannot begin a transaction that nobody ends, but a late end can end the next one.

BARNABAS_TEST_BOOTSTRAP=127.0.0.1:port points these tests at another broker: Apache Kafka answers the same."""

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.clients.broker_process import running_broker
from tests.clients.client import wait_until
from tests.faults.transaction_stage import (
    QUICK,
    Ends,
    connected,
    ends,
    settled_topic,
    state_of,
    wait_for_state,
    wait_until_nothing_hangs,
    write,
)
from tests.support.raw_calls import PRODUCE, Topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import (
    END_TXN,
    NEW,
    OLD,
    TXN_OFFSET_COMMIT,
    TXN_OFFSET_COMMIT_VERSIONS,
    RawTransactional,
)

from barnabas.errors import ErrorCode

FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
VERSIONS = pytest.mark.parametrize("version", [OLD, NEW], ids=["version 1", "version 2"])
Deliver = Callable[[], int]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if FOREIGN_BOOTSTRAP:
        yield FOREIGN_BOOTSTRAP
        return
    with running_broker(tmp_path_factory.mktemp("broker"), QUICK) as broker:
        yield broker.bootstrap
        assert "Traceback" not in broker.log_text(), broker.log_tail()


@pytest.fixture
def client(bootstrap: str) -> Iterator[RawClient]:
    with connected(bootstrap) as client:
        yield client


@pytest.fixture
def other_connection(bootstrap: str) -> Iterator[RawClient]:
    """The one on which the late frame arrives."""
    with connected(bootstrap) as client:
        yield client


def producer_of(client: RawClient, version: int, **how: int) -> RawTransactional:
    producer = RawTransactional(client, f"late-{uuid.uuid4()}", version)
    producer.init(**how)
    return producer


def held_produce(
    connection: RawClient, producer: RawTransactional, topic: Topic, partition: int = 0
) -> Deliver:
    """A Produce request as it is now, sent when the result is called; returns the error code."""
    version = producer.produce_version
    frame = connection.encode(PRODUCE, version, producer.produce_frame(topic, b"late", partition))

    def deliver() -> int:
        connection.send_bytes(frame)
        _, answer = connection.receive(PRODUCE, version)
        return int(answer.responses[0].partition_responses[0].error_code)

    return deliver


def held_end(connection: RawClient, producer: RawTransactional, commit: bool) -> Deliver:
    version = producer.end_version
    frame = connection.encode(END_TXN, version, producer.end_frame(commit))

    def deliver() -> int:
        connection.send_bytes(frame)
        return int(connection.receive(END_TXN, version)[1].error_code)

    return deliver


@VERSIONS
@pytest.mark.parametrize("commits", [True, False])
def test_a_late_record_begins_no_transaction_that_hangs(
    client: RawClient, other_connection: RawClient, version: int, commits: bool
) -> None:
    """This holds for partitions of the transaction and for others."""
    topic = settled_topic(client, 2)
    producer = producer_of(client, version)
    write(producer, topic, b"in time")
    late = [held_produce(other_connection, producer, topic, partition) for partition in (0, 1)]
    assert producer.end(commits) == 0
    wait_until_nothing_hangs(client, topic)
    refusal = ErrorCode.TRANSACTION_ABORTABLE if version == OLD else ErrorCode.INVALID_PRODUCER_EPOCH
    assert [deliver() for deliver in late] == [refusal, refusal]
    assert [ends(client, topic, partition) for partition in (0, 1)] == [Ends(2, 2), Ends(0, 0)]


def test_an_old_producer_gets_an_error_it_knows(client: RawClient) -> None:
    """TRANSACTION_ABORTABLE came with Produce 11."""
    topic = settled_topic(client)
    producer = producer_of(client, OLD)
    write(producer, topic, b"in time")
    late = producer.produce_frame(topic, b"late")
    assert producer.end(True) == 0
    wait_until_nothing_hangs(client, topic)
    answer = client.call(PRODUCE, 9, late).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE
    assert ends(client, topic) == Ends(2, 2)


@VERSIONS
def test_a_late_record_does_not_join_a_transaction_on_another_partition(
    client: RawClient, other_connection: RawClient, version: int
) -> None:
    topic = settled_topic(client, 2)
    producer = producer_of(client, version)
    write(producer, topic, b"first", [1])
    late = held_produce(other_connection, producer, topic, 1)
    assert producer.end(True) == 0
    wait_until_nothing_hangs(client, topic, 2)
    write(producer, topic, b"second", [0])
    refusal = ErrorCode.TRANSACTION_ABORTABLE if version == OLD else ErrorCode.INVALID_PRODUCER_EPOCH
    assert late() == refusal
    assert producer.end(True) == 0
    assert wait_until_nothing_hangs(client, topic, 2) == [Ends(2, 2), Ends(2, 2)]


def test_version_2_a_late_record_does_not_join_a_later_transaction_on_the_same_partition(
    client: RawClient, other_connection: RawClient
) -> None:
    topic = settled_topic(client)
    producer = producer_of(client, NEW)
    write(producer, topic, b"first")
    late = held_produce(other_connection, producer, topic)
    assert producer.end(True) == 0
    write(producer, topic, b"second")
    assert late() == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(True) == 0
    assert wait_until_nothing_hangs(client, topic) == [Ends(4, 4)]
    assert late() == ErrorCode.INVALID_PRODUCER_EPOCH
    assert ends(client, topic) == Ends(4, 4)


def test_version_1_writes_a_late_repeat_once_and_leaves_nothing_hanging(
    client: RawClient, other_connection: RawClient
) -> None:
    """With one epoch for all transactions, only the sequence number shows a repeat: what was written is not
    written twice; what was not written becomes a record of the current transaction and ends with it."""
    topic = settled_topic(client)
    producer = producer_of(client, OLD)
    write(producer, topic, b"first")
    producer.sequences[topic.name, 0] = 0
    repeat = held_produce(other_connection, producer, topic)
    assert producer.end(True) == 0
    wait_until_nothing_hangs(client, topic)
    write(producer, topic, b"second")
    never_written = held_produce(other_connection, producer, topic)
    assert [repeat(), never_written()] == [0, 0]
    assert ends(client, topic) == Ends(2, 4)
    assert producer.end(False) == 0
    assert wait_until_nothing_hangs(client, topic) == [Ends(5, 5)]


@pytest.mark.parametrize("commits", [True, False])
def test_version_2_a_late_end_does_not_touch_a_later_transaction(
    client: RawClient, other_connection: RawClient, commits: bool
) -> None:
    """The client repeated its request, got the answer and began the next transaction."""
    topic = settled_topic(client)
    producer = producer_of(client, NEW)
    write(producer, topic, b"first")
    late = [held_end(other_connection, producer, commit) for commit in (commits, not commits)]
    assert producer.end(commits) == 0
    wait_for_state(client, producer.name, "CompleteCommit" if commits else "CompleteAbort")
    assert late[0]() == 0, "a repeat gets the same answer"
    assert late[1]() == ErrorCode.INVALID_TXN_STATE, "but not the opposite"
    write(producer, topic, b"second")
    assert [deliver() for deliver in late] == [ErrorCode.PRODUCER_FENCED] * 2
    assert state_of(client, producer.name) == "Ongoing"
    assert ends(client, topic) == Ends(2, 3)
    assert producer.end(not commits) == 0
    assert wait_until_nothing_hangs(client, topic) == [Ends(4, 4)]
    assert [deliver() for deliver in late] == [ErrorCode.PRODUCER_FENCED] * 2


@VERSIONS
def test_a_late_end_of_a_client_that_started_over_is_refused(
    client: RawClient, other_connection: RawClient, version: int
) -> None:
    """The remedy for version 1: a client that does not know how a transaction ended gets a new epoch
    (KIP-360)."""
    topic = settled_topic(client)
    producer = producer_of(client, version)
    write(producer, topic, b"first")
    late = [held_end(other_connection, producer, commit) for commit in (True, False)]
    producer.init()
    wait_until_nothing_hangs(client, topic)
    write(producer, topic, b"second")
    assert [deliver() for deliver in late] == [ErrorCode.PRODUCER_FENCED] * 2
    assert state_of(client, producer.name) == "Ongoing"
    assert producer.end(True) == 0
    assert wait_until_nothing_hangs(client, topic) == [Ends(4, 4)]


@pytest.mark.parametrize("commits", [True, False])
def test_version_1_takes_a_late_end_for_the_end_of_a_later_transaction(
    client: RawClient, other_connection: RawClient, commits: bool
) -> None:
    """docs/durability.md warns of this; Kafka does the same."""
    topic = settled_topic(client)
    producer = producer_of(client, OLD)
    write(producer, topic, b"first")
    late = held_end(other_connection, producer, commits)
    assert producer.end(True) == 0
    wait_until_nothing_hangs(client, topic)
    write(producer, topic, b"second")
    assert late() == 0
    wait_for_state(client, producer.name, "CompleteCommit" if commits else "CompleteAbort")
    assert wait_until_nothing_hangs(client, topic) == [Ends(4, 4)]


@VERSIONS
def test_late_offsets_are_not_committed(client: RawClient, other_connection: RawClient, version: int) -> None:
    """TxnOffsetCommit after the end: the offsets partition would hang, too."""
    topic = settled_topic(client)
    group = f"group-{uuid.uuid4()}"
    RawGroup(client, group).find()
    producer = producer_of(client, version)
    if version == OLD:
        assert producer.add_offsets(group) == 0
    wait_until(lambda: producer.commit_offset(group, topic, 5) == 0, "the offsets are taken")
    late = producer.offset_frame(group, topic, 7)
    number = TXN_OFFSET_COMMIT_VERSIONS[version]
    assert producer.end(True) == 0
    wait_for_state(client, producer.name, "CompleteCommit")
    answer = other_connection.call(TXN_OFFSET_COMMIT, number, late)
    code = answer.topics[0].partitions[0].error_code
    # Version 3 is older than TRANSACTION_ABORTABLE.
    assert code == (ErrorCode.INVALID_TXN_STATE if version == OLD else ErrorCode.INVALID_PRODUCER_EPOCH)
    assert stable_offset(client, group, topic) == 5


def stable_offset(client: RawClient, group: str, topic: Topic) -> int:
    """The committed offset; it is not returned while a transactional commit is open."""
    fetched = RawGroup(client, group).fetch(topic, require_stable=True)
    assert fetched.error_code == 0
    return int(fetched.committed_offset)
