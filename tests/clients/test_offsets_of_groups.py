"""Committed offsets are returned, survive restarts, and only members may commit."""

import signal
import time

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import BrokerError, numbered, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.conftest import Join, MakeTopic
from tests.clients.consumers import ASSIGNORS
from tests.clients.members import Member, places_of, settle, wait_for_values

ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 22, 25, 27
OFFSET_METADATA_TOO_LARGE = 12
# Libraries whose committed() returns the metadata of a commit.
RETURNS_METADATA = ("confluent-kafka", "kafka-python")


def values(count: int) -> list[bytes]:
    return [message.value for message in numbered(count) if message.value is not None]


def commit_of(member: Member, offset: int, metadata: str = "") -> None:
    (place,) = member.owned
    member.ask(lambda consumer: consumer.commit({place: (offset, metadata)}))


@pytest.mark.parametrize("library", ASSIGNORS)
def test_a_restarted_consumer_continues_where_it_committed(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic()
    ConfluentClient(quick_bootstrap).produce(topic, numbered(20))
    first = join(library, quick_bootstrap, topics=(topic,))
    wait_for_values([first], values(20))
    assert first.ask(lambda consumer: consumer.committed((topic, 0))) is None
    commit_of(first, 12)
    assert first.ask(lambda consumer: consumer.committed((topic, 0))) == (12, "")
    first.leave()
    second = join(library, quick_bootstrap, topics=(topic,))
    wait_for_values([second], values(20)[12:])
    assert [seen.offset for seen in second.received] == list(range(12, 20))


@pytest.mark.parametrize("library", RETURNS_METADATA)
def test_the_metadata_of_a_commit_is_returned(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic()
    member = join(library, quick_bootstrap, topics=(topic,))
    settle([member], places_of(topic, 1))
    # One less than the limit: confluent-kafka sends the zero at the end of its string too.
    longest = "x" * 4095
    for metadata in ("", "a note", "ünïcode 鍵", longest):
        commit_of(member, 7, metadata)
        assert member.ask(lambda consumer: consumer.committed((topic, 0))) == (7, metadata)
    with pytest.raises(BrokerError) as raised:
        commit_of(member, 8, "x" * 4097)
    assert raised.value.code == OFFSET_METADATA_TOO_LARGE
    assert member.ask(lambda consumer: consumer.committed((topic, 0))) == (7, longest)


@pytest.mark.parametrize("library", ASSIGNORS)
def test_automatic_commits(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic()
    ConfluentClient(quick_bootstrap).produce(topic, numbered(15))
    member = join(library, quick_bootstrap, topics=(topic,), auto_commit=True)
    wait_for_values([member], values(15))
    wait_until(
        lambda: member.ask(lambda consumer: consumer.committed((topic, 0))) == (15, ""), "15 is committed"
    )


@pytest.mark.parametrize("library", ASSIGNORS)
def test_leaving_commits_what_was_read(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic()
    ConfluentClient(quick_bootstrap).produce(topic, numbered(15))
    first = join(library, quick_bootstrap, topics=(topic,), auto_commit=True)
    wait_for_values([first], values(15))
    first.leave()
    second = join(library, quick_bootstrap, topics=(topic,))
    settle([second], places_of(topic, 1))
    assert second.ask(lambda consumer: consumer.committed((topic, 0))) == (15, "")


@pytest.mark.parametrize("library", ASSIGNORS)
def test_a_consumer_that_was_too_slow_cannot_commit(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    """It polls too rarely and is removed. Another member has its partition, and its commits must stay."""
    topic = make_quick_topic()
    ConfluentClient(quick_bootstrap).produce(topic, numbered(10))
    slow = join(library, quick_bootstrap, topics=(topic,), session_timeout_ms=1500, poll_interval_ms=1600)
    wait_for_values([slow], values(10))
    slow.stop_polling()
    other = join(library, quick_bootstrap, topics=(topic,))
    settle([other], places_of(topic, 1))
    commit_of(other, 10)
    with pytest.raises(Exception) as raised:
        slow.ask(lambda consumer: consumer.commit({(topic, 0): (3, "")}))
    # kafka-python and aiokafka raise the error themselves, without a request.
    expected = (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS)
    named = type(raised.value).__name__ in ("CommitFailedError", "IllegalStateError")
    assert named or getattr(raised.value, "code", None) in expected, repr(raised.value)
    assert other.ask(lambda consumer: consumer.committed((topic, 0))) == (10, "")
    # It joins again as a new member.
    other.leave()
    slow.poll_again()
    settle([slow], places_of(topic, 1))


def test_a_consumer_outside_the_group_cannot_commit(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join
) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    topic = make_quick_topic()
    member = join("confluent-kafka", quick_bootstrap, topics=(topic,), group=f"{topic}-live")
    settle([member], places_of(topic, 1))
    outsider = Consumer({"bootstrap.servers": quick_bootstrap, "group.id": f"{topic}-live"})
    outsider.assign([TopicPartition(topic, 0, 0)])
    with pytest.raises(KafkaException) as raised:
        outsider.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    assert raised.value.args[0].code() == UNKNOWN_MEMBER_ID
    # A group without members allows it.
    member.leave()
    wait_until(lambda: _commits(outsider, topic), "the group is empty and takes the commit")
    assert outsider.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 5
    outsider.close()


def _commits(consumer: object, topic: str) -> bool:
    from confluent_kafka import KafkaException, TopicPartition

    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)  # type: ignore[attr-defined]
    except KafkaException:
        return False
    return True


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_commits_survive_a_restart_of_the_broker(
    own_quick_broker: BrokerProcess, topic_name: str, join: Join, with_signal: int
) -> None:
    """Each commit that was acknowledged is there after the restart, and the members are still members."""
    ConfluentAdmin(own_quick_broker.bootstrap).create_topic(topic_name, 2)
    members = [
        join(library, own_quick_broker.bootstrap, topics=(topic_name,), session_timeout_ms=15_000)
        for library in ("confluent-kafka", "kafka-python")
    ]
    settle(members, places_of(topic_name, 2))
    last = 0
    for turn in range(2):
        for last in range(turn * 100, turn * 100 + 20):
            commit_of(members[0], last, f"number {last}")
        own_quick_broker.restart(with_signal)
        (place,) = members[0].owned
        offset_now = members[0].ask(lambda consumer: consumer.committed(place))  # noqa: B023
        assert offset_now == (last, f"number {last}")
    settle(members, places_of(topic_name, 2))
    time.sleep(0.5)  # some heartbeats: a member that the broker has forgotten would lose its partitions
    settle(members, places_of(topic_name, 2))
