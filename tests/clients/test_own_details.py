"""Details of our producer and consumer with a broker: metadata age, idle connections, rebalances,
patterns."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import wait_until
from tests.clients.confluent_client import ConfluentAdmin
from tests.clients.conftest import MakeTopic
from tests.clients.lossy_proxy import LossyProxy
from tests.clients.test_own_consumer import MakeConsumer, fill, read

from barnabas import Admin, Consumer, OffsetAndMetadata, Producer, SubscriptionPattern, TopicPartition
from barnabas.client.consumer import RangeAssignor, Subscription
from barnabas.client.errors import (
    CommitFailedError,
    ConcurrentAccessError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    WakeupError,
)

PATIENCE_SECONDS = 30.0


@pytest.fixture
def consumer_of(quick_bootstrap: str, topic_name: str) -> Iterator[MakeConsumer]:
    """consumer_of(...) of the test's own group, closed at the end."""
    made: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        how = {"group_id": f"of-{topic_name}", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}
        made.append(Consumer({}, bootstrap_servers=quick_bootstrap, **{**how, **settings}))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def poll_all(*consumers: Consumer) -> None:
    for consumer in consumers:
        consumer.poll(0.02)


# ---- the producer


def test_partitions_that_are_added_later_are_used_after_metadata_max_age(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    topic = make_quick_topic(partitions=1)
    with Producer(
        bootstrap_servers=quick_bootstrap, metadata_max_age_ms=100, partitioner_class="round_robin"
    ) as producer:
        assert producer.send(topic, b"").result(PATIENCE_SECONDS).partition == 0
        ConfluentAdmin(quick_bootstrap).add_partitions(topic, 3)

        def used() -> set[int]:
            futures = [producer.send(topic, b"") for _ in range(6)]
            return {future.result(PATIENCE_SECONDS).partition for future in futures}

        wait_until(lambda: used() == {0, 1, 2}, "all partitions are used")


def test_partitioners(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=3)

    def sizes(name: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        return len(value or b"") % partitions

    for partitioner, expected in (
        (sizes, [0, 1, 2, 0]),
        ("round_robin", None),
        ("org.apache.kafka.clients.producer.RoundRobinPartitioner", None),
        ("random", None),
    ):
        with Producer(bootstrap_servers=quick_bootstrap, partitioner_class=partitioner) as producer:
            futures = [producer.send(topic, b"x" * size, key=b"same") for size in range(60)]
            chosen = [future.result(PATIENCE_SECONDS).partition for future in futures]
            assert producer.send(topic, b"", partition=2).result(PATIENCE_SECONDS).partition == 2
        if expected is not None:
            assert chosen[:4] == expected
        elif partitioner == "random":
            assert set(chosen) == {0, 1, 2}
        else:
            assert Counter(chosen) == {0: 20, 1: 20, 2: 20}


def test_an_idle_connection_is_closed_and_opened_again(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    topic = make_quick_topic()
    with (
        LossyProxy(quick_bootstrap, acks_to_lose=0) as proxy,
        Producer(
            bootstrap_servers=proxy.bootstrap, connections_max_idle_ms=200, metadata_max_age_ms=3_600_000
        ) as producer,
    ):
        assert producer.send(topic, b"").result(PATIENCE_SECONDS).offset == 0
        assert proxy.opened > 0
        wait_until(lambda: proxy.open_now == 0, "all connections are closed")
        opened = proxy.opened
        assert producer.send(topic, b"").result(PATIENCE_SECONDS).offset == 1
        assert proxy.opened > opened


def knows(producer: Producer, topic: str) -> bool:
    """Whether the producer has the topic's metadata."""
    try:
        return bool(producer.partitions_for(topic))
    except KafkaTimeoutError:
        return False


def test_timeouts_of_delivery_metadata_and_memory(own_broker: BrokerProcess, topic_name: str) -> None:
    with Producer(bootstrap_servers=own_broker.bootstrap) as producer:
        producer.send(topic_name, b"first").result(PATIENCE_SECONDS)
    how: dict[str, Any] = {
        "bootstrap_servers": own_broker.bootstrap,
        "linger_ms": 0,
        "request_timeout_ms": 200,
        "max_block_ms": 300,
        "buffer_memory": 20_000,
        "batch_size": 4000,
    }
    with Producer(**how, delivery_timeout_ms=500) as hasty, Producer(**how) as patient:
        wait_until(lambda: knows(hasty, topic_name) and knows(patient, topic_name), "the metadata")
        own_broker.stop()
        outcomes: list[Any] = []
        future = hasty.send(topic_name, b"late", on_delivery=lambda *outcome: outcomes.append(outcome))
        with pytest.raises(KafkaTimeoutError, match="not confirmed within delivery"):
            future.result(PATIENCE_SECONDS)
        wait_until(lambda: bool(outcomes), "the callback")
        assert outcomes[0][0] is None and isinstance(outcomes[0][1], KafkaTimeoutError)
        with pytest.raises(KafkaTimeoutError, match=r"no metadata of topic .*max\.block\.ms"):
            hasty.send(f"not-{topic_name}", b"")
        with pytest.raises(KafkaTimeoutError, match=r"buffer\.memory is full"):
            for _ in range(30):
                patient.send(topic_name, b"x" * 1000)
        patient.close(0.1)


# ---- the consumer


def test_a_pattern_that_the_brokers_match(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic(partitions=2)
    fill(quick_bootstrap, topic, 10)
    consumer = consumer_of(group_protocol="consumer")
    consumer.subscribe(SubscriptionPattern(re.escape(topic).replace("\\-", "-") + "(-more)?"))
    assert len(read(consumer, 10)) == 10
    assert consumer.subscription() == {topic}
    consumer.commit_sync()
    # Another pattern, then topics by name: both are sent to the brokers.
    consumer.subscribe(SubscriptionPattern("no-topic-has-this-name"))
    wait_until(lambda: poll_all(consumer) or not consumer.assignment(), "nothing is assigned")
    consumer.unsubscribe()
    consumer.subscribe([topic])
    wait_until(lambda: poll_all(consumer) or len(consumer.assignment()) == 2, "both partitions")
    with pytest.raises(RuntimeError, match="before changing"):
        consumer.subscribe(SubscriptionPattern("x"))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_is_created_after_its_consumer(
    quick_bootstrap: str,
    make_quick_topic: MakeTopic,
    consumer_of: MakeConsumer,
    topic_name: str,
    protocol: str,
) -> None:
    consumer = consumer_of(group_protocol=protocol, allow_auto_create_topics=False)
    consumer.subscribe([topic_name])
    wait_until(
        lambda: poll_all(consumer) or bool(consumer.group_metadata().member_id), "a member of the group"
    )
    poll_all(consumer, consumer)
    assert consumer.assignment() == set()
    topic = make_quick_topic(partitions=2)
    wait_until(lambda: poll_all(consumer) or len(consumer.assignment()) == 2, "both partitions")
    fill(quick_bootstrap, topic, 3)
    assert len(read(consumer, 3)) == 3


def test_a_pattern_for_brokers_needs_the_new_protocol(consumer_of: MakeConsumer) -> None:
    with pytest.raises(RuntimeError, match=r"group\.protocol=consumer"):
        consumer_of().subscribe(SubscriptionPattern("x"))


def test_a_commit_during_a_rebalance_may_be_tried_again(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic(partitions=3)
    fill(quick_bootstrap, topic, 10)
    offsets = {TopicPartition(topic, 0): OffsetAndMetadata(1)}
    first, idle = consumer_of(enable_auto_commit=False), consumer_of(enable_auto_commit=False)
    first.subscribe([topic])
    with pytest.raises(CommitFailedError, match="has not joined yet"):
        first.commit_sync(offsets)
    for consumer in (first, idle):
        consumer.subscribe([topic])
    wait_until(lambda: poll_all(first, idle) or bool(first.assignment() and idle.assignment()), "two members")
    third = consumer_of(enable_auto_commit=False)
    third.subscribe([topic])

    def commit_meets_the_rebalance() -> bool:
        # `idle` does not poll, so the rebalance that `third` has begun does not end.
        poll_all(first, third)
        try:
            first.commit_sync(offsets)
        except RebalanceInProgressError:
            return True
        return False

    wait_until(commit_meets_the_rebalance, "a commit meets the rebalance")

    def all_have_one() -> bool:
        poll_all(first, idle, third)
        return all(len(consumer.assignment()) == 1 for consumer in (first, idle, third))

    wait_until(all_have_one, "the rebalance has ended")
    first.commit_sync(offsets)


def test_a_static_member_that_does_not_poll_keeps_its_partitions_for_a_session(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    consumer = consumer_of(
        group_instance_id="till-1",
        max_poll_interval_ms=500,
        session_timeout_ms=30_000,
        enable_auto_commit=False,
    )
    consumer.subscribe([topic])
    wait_until(lambda: poll_all(consumer) or bool(consumer.assignment()), "the partition")
    member_id = consumer.group_metadata().member_id
    wait_until(lambda: not consumer.group_metadata().member_id, "the member has given up its membership")
    with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
        consumer.commit_sync({TopicPartition(topic, 0): OffsetAndMetadata(0)})
    with Admin(bootstrap_servers=quick_bootstrap) as admin:
        (member,) = admin.describe_consumer_groups([f"of-{topic}"])[f"of-{topic}"].members
    assert (member.member_id, member.group_instance_id) == (member_id, "till-1")
    wait_until(lambda: poll_all(consumer) or bool(consumer.assignment()), "it is back")


class Backwards:
    """A custom assignor: it gives all partitions to the last member."""

    name = "backwards"
    is_cooperative = False

    def assign(
        self, partitions: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        last = max(members, key=lambda member: members[member].instance_id or "")
        everything = [
            TopicPartition(topic, index) for topic, count in partitions.items() for index in range(count)
        ]
        return {member: everything if member == last else [] for member in members}

    def user_data(self, owned: object, generation: int) -> bytes | None:
        return b"mine"


def test_a_custom_assignor(make_quick_topic: MakeTopic, consumer_of: MakeConsumer) -> None:
    topic = make_quick_topic(partitions=3)
    members = [
        consumer_of(partition_assignment_strategy=[Backwards(), RangeAssignor()], group_instance_id=name)
        for name in ("a", "b")
    ]
    for member in members:
        member.subscribe([topic])

    def shares() -> list[int]:
        poll_all(*members)
        return [len(member.assignment()) for member in members]

    wait_until(lambda: shares() == [0, 3], "all for the last")


def test_close_waits_for_commits_in_flight(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 50)
    partition = TopicPartition(topic, 0)
    outcomes: list[Any] = []
    for expected in range(1, 11):
        consumer = consumer_of(enable_auto_commit=False)
        consumer.subscribe([topic])
        read(consumer, 1)
        consumer.commit_async(
            {partition: OffsetAndMetadata(expected)}, lambda *outcome: outcomes.append(outcome)
        )
        consumer.close()
        assert outcomes[-1] == ({partition: OffsetAndMetadata(expected)}, None)
    with_commit = consumer_of()
    stored = with_commit.committed([partition])[partition]
    assert stored is not None and stored.offset == 10


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_iterating_moves_the_position_record_by_record(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer, protocol: str
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 100)
    partition = TopicPartition(topic, 0)
    consumer = consumer_of(enable_auto_commit=False, group_protocol=protocol)
    consumer.subscribe([topic])
    for record in consumer:
        assert consumer.position(partition) == record.offset + 1
        if record.offset == 30:
            break
    consumer.commit_sync()
    committed = consumer.committed([partition])[partition]
    assert committed is not None and committed.offset == 31
    assert [record.offset for record in read(consumer, 69)] == list(range(31, 100))


def test_lag_and_lead_are_in_the_metrics(
    quick_bootstrap: str, make_quick_topic: MakeTopic, consumer_of: MakeConsumer
) -> None:
    topic = make_quick_topic(partitions=2)
    for index, count in enumerate((100, 40)):
        fill(quick_bootstrap, topic, count, index)
    partitions = [TopicPartition(topic, index) for index in (0, 1)]
    consumer = consumer_of(max_poll_records=10)
    consumer.assign(partitions)
    assert consumer.current_lag(partitions[0]) is None
    consumer.seek(partitions[0], 30)
    consumer.seek(partitions[1], 35)

    def are_known() -> bool:
        consumer.poll(0.1)
        return None not in [consumer.current_lag(each) for each in partitions]

    wait_until(are_known, "both were fetched")
    lags = {each: ends - consumer.position(each) for each, ends in zip(partitions, (100, 40), strict=True)}
    assert {each: consumer.current_lag(each) for each in partitions} == lags
    figures = consumer.metrics()
    assert figures["records-lag-max"] == max(lags.values())
    assert figures["records-lead-min"] == min(consumer.position(each) for each in partitions)
    assert figures["partitions"][partitions[1]]["records-lag"] == lags[partitions[1]]


def test_a_second_thread_is_refused_at_once(make_quick_topic: MakeTopic, consumer_of: MakeConsumer) -> None:
    topic = make_quick_topic()
    consumer = consumer_of()
    consumer.assign([TopicPartition(topic, 0)])
    ended: list[BaseException] = []

    def poll() -> None:
        try:
            consumer.poll(PATIENCE_SECONDS)
        except WakeupError as error:
            ended.append(error)

    polling = threading.Thread(target=poll)
    polling.start()
    calls: list[Callable[[], object]] = [
        lambda: consumer.poll(PATIENCE_SECONDS),
        consumer.commit_sync,
        consumer.assignment,
        consumer.close,
        lambda: consumer.seek(TopicPartition(topic, 0), 0),
    ]

    def is_refused(call: Callable[[], object]) -> bool:
        try:
            call()
        except ConcurrentAccessError:
            return True
        return False

    # The call succeeds until the other thread has begun its poll.
    wait_until(lambda: is_refused(consumer.assignment), "the other thread polls")
    assert all(is_refused(call) for call in calls)
    consumer.wakeup()
    polling.join(PATIENCE_SECONDS)
    assert len(ended) == 1


def test_heartbeats_of_the_new_protocol_keep_their_interval(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    """A member must not send the next heartbeat directly after each answer."""
    topic = make_quick_topic(partitions=2)
    with (
        LossyProxy(quick_bootstrap, acks_to_lose=0) as proxy,
        Consumer(
            bootstrap_servers=proxy.bootstrap, group_id=f"of-{topic}", group_protocol="consumer"
        ) as consumer,
    ):
        consumer.subscribe([topic])
        wait_until(lambda: poll_all(consumer) or len(consumer.assignment()) == 2, "both partitions")
        before, began = proxy.requests[68], time.monotonic()
        while time.monotonic() < began + 1.0:
            consumer.poll(0.05)
        # Every 200 ms, or up to 5 s with Kafka's own settings; a busy loop would be at hundreds.
        assert proxy.requests[68] - before < 30
