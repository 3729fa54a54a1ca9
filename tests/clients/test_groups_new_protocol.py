"""Groups in which the broker assigns (group.protocol=consumer, KIP-848), judged by confluent-kafka."""

import uuid

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.conftest import Join, MakeTopic
from tests.clients.members import Member, places_of, settle, shares, wait_for_values
from tests.clients.test_groups import spread, values_of

NEW = {"library": "confluent-kafka", "protocol": "consumer"}


def _members(join: Join, bootstrap: str, topic: str, count: int, assignor: str = "uniform") -> list[Member]:
    return [
        join(bootstrap=bootstrap, topics=(topic,), assignor=assignor, commits=True, **NEW)
        for _ in range(count)
    ]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_come_and_go(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, assignor: str
) -> None:
    topic = make_quick_topic(6)
    places = places_of(topic, 6)
    client = ConfluentClient(quick_bootstrap)
    members = _members(join, quick_bootstrap, topic, 1, assignor)
    settle(members, places)
    for turn in range(2):
        members += _members(join, quick_bootstrap, topic, 1, assignor)
        settle(members, places)
        sent = spread(topic, 6, 5, f"turn {turn} ")
        client.produce(topic, sent)
        wait_for_values(members, values_of(sent))
    assert shares(members) == [2, 2, 2]
    members[0].leave()
    settle(members[1:], places)
    sent = spread(topic, 6, 5, "after leaving ")
    client.produce(topic, sent)
    wait_for_values(members[1:], values_of(sent))


def test_ten_members_join_at_once(quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join) -> None:
    topic = make_quick_topic(10)
    sent = spread(topic, 10, 5)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    members = _members(join, quick_bootstrap, topic, 10)
    settle(members, places_of(topic, 10))
    wait_for_values(members, values_of(sent))


def test_new_partitions_are_assigned(quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join) -> None:
    topic = make_quick_topic(2)
    members = _members(join, quick_bootstrap, topic, 2)
    settle(members, places_of(topic, 2))
    ConfluentAdmin(quick_bootstrap).add_partitions(topic, 6)
    settle(members, places_of(topic, 6))


def test_a_pattern_finds_topics_old_and_new(quick_bootstrap: str, join: Join) -> None:
    """librdkafka sends the pattern; the broker matches it."""
    prefix = f"pattern-{uuid.uuid4().hex[:8]}"
    admin = ConfluentAdmin(quick_bootstrap)
    admin.create_topic(f"{prefix}-old", 2)
    member = join(bootstrap=quick_bootstrap, pattern=f"{prefix}-.*", assignor="uniform", **NEW)
    settle([member], places_of(f"{prefix}-old", 2))
    admin.create_topic(f"{prefix}-new", 2)
    settle([member], places_of(f"{prefix}-old", 2) | places_of(f"{prefix}-new", 2))


def test_commits_are_kept(quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join) -> None:
    topic = make_quick_topic(1)
    ConfluentClient(quick_bootstrap).produce(topic, spread(topic, 1, 10))
    (first,) = _members(join, quick_bootstrap, topic, 1)
    wait_for_values([first], [b"v0-9"])
    wait_until(
        lambda: first.ask(lambda consumer: consumer.committed((topic, 0))) == (10, ""), "10 is committed"
    )
    first.leave()
    ConfluentClient(quick_bootstrap).produce(topic, spread(topic, 1, 3, "more "))
    (second,) = _members(join, quick_bootstrap, topic, 1)
    wait_for_values([second], [b"more 0-2"])
    assert [seen.offset for seen in second.received] == [10, 11, 12]


def test_a_group_moves_from_the_classic_protocol_to_the_new_one_and_back(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join
) -> None:
    topic = make_quick_topic(4)
    places = places_of(topic, 4)
    sent = spread(topic, 4, 5)
    ConfluentClient(quick_bootstrap).produce(topic, sent)

    def classic() -> Member:
        return join("confluent-kafka", quick_bootstrap, commits=True, topics=(topic,))

    old = [classic(), classic()]
    settle(old, places)
    wait_for_values(old, values_of(sent))
    new = _members(join, quick_bootstrap, topic, 1)
    settle([*old, *new], places)
    old[0].leave()
    new += _members(join, quick_bootstrap, topic, 1)
    settle([old[1], *new], places)
    old[1].leave()
    settle(new, places)
    back = classic()
    settle([*new, back], places)
    for member in new:
        member.leave()
    settle([back], places)
    more = spread(topic, 4, 5, "at the end ")
    ConfluentClient(quick_bootstrap).produce(topic, more)
    wait_for_values([back], values_of(more))


def test_the_group_survives_a_restart_of_the_broker(
    own_quick_broker: BrokerProcess, topic_name: str, join: Join
) -> None:
    bootstrap = own_quick_broker.bootstrap
    ConfluentAdmin(bootstrap).create_topic(topic_name, 4)
    members = _members(join, bootstrap, topic_name, 2)
    settle(members, places_of(topic_name, 4))
    for turn in range(2):
        own_quick_broker.restart(9)
        sent = spread(topic_name, 4, 5, f"turn {turn} ")
        ConfluentClient(bootstrap).produce(topic_name, sent)
        wait_for_values(members, values_of(sent))
        settle(members, places_of(topic_name, 4))
