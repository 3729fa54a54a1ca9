"""Consumers share partitions: every library, every assignor, members that join and leave."""

import uuid

import pytest
from tests.clients.client import Message, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.conftest import Join, MakeTopic
from tests.clients.consumers import ASSIGNORS
from tests.clients.members import Member, places_of, settle, shares, wait_for_values

WITH_ASSIGNOR = [(library, assignor) for library, names in ASSIGNORS.items() for assignor in names]
PATIENCE_SECONDS = 45.0


def spread(topic: str, partitions: int, each: int, prefix: str = "v") -> list[Message]:
    return [
        Message(f"{prefix}{partition}-{number}".encode(), partition=partition)
        for number in range(each)
        for partition in range(partitions)
    ]


def values_of(messages: list[Message]) -> list[bytes]:
    return [message.value for message in messages if message.value is not None]


@pytest.mark.parametrize("library", ASSIGNORS)
def test_one_member_reads_everything_in_order(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(3)
    sent = spread(topic, 3, 40)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    member = join(library, quick_bootstrap, topics=(topic,))
    wait_for_values([member], values_of(sent))
    for partition in range(3):
        offsets = [seen.offset for seen in member.received if seen.partition == partition]
        assert offsets == list(range(40))
    assert member.owned == places_of(topic, 3)
    assert ("assigned", places_of(topic, 3)) in member.changes.calls


@pytest.mark.parametrize(("library", "assignor"), WITH_ASSIGNOR)
def test_members_come_and_go(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str, assignor: str
) -> None:
    topic = make_quick_topic(6)
    places = places_of(topic, 6)
    client = ConfluentClient(quick_bootstrap)
    first = join(library, quick_bootstrap, commits=True, topics=(topic,), assignor=assignor)
    settle([first], places)
    members = [first]
    for turn in range(2):
        members.append(join(library, quick_bootstrap, commits=True, topics=(topic,), assignor=assignor))
        settle(members, places)
        sent = spread(topic, 6, 5, f"turn {turn} ")
        client.produce(topic, sent)
        wait_for_values(members, values_of(sent))
    assert shares(members) == [2, 2, 2]
    first.leave()
    settle(members[1:], places)
    sent = spread(topic, 6, 5, "after leaving ")
    client.produce(topic, sent)
    wait_for_values(members[1:], values_of(sent))
    if assignor == "cooperative-sticky":
        revoked = [place for kind, gone in members[1].changes.calls if kind == "revoked" for place in gone]
        assert len(revoked) <= 2, "a cooperative member gives up only what moves"


@pytest.mark.parametrize("library", ASSIGNORS)
def test_ten_members_and_more_members_than_partitions(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(8)
    sent = spread(topic, 8, 10)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    members = [join(library, quick_bootstrap, commits=True, topics=(topic,)) for _ in range(10)]
    settle(members, places_of(topic, 8))
    assert shares(members) == [0, 0] + [1] * 8
    wait_for_values(members, values_of(sent))


def test_members_of_different_libraries_share_a_group(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join
) -> None:
    topic = make_quick_topic(6)
    members = [
        join(library, quick_bootstrap, commits=True, topics=(topic,), assignor="range")
        for library in ASSIGNORS
    ]
    settle(members, places_of(topic, 6))
    assert shares(members) == [2, 2, 2]
    sent = spread(topic, 6, 5)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    wait_for_values(members, values_of(sent))


def test_a_member_without_a_common_assignor_is_refused(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join
) -> None:
    topic = make_quick_topic(2)
    member = join("confluent-kafka", quick_bootstrap, topics=(topic,), assignor="range")
    settle([member], places_of(topic, 2))
    other = join("confluent-kafka", quick_bootstrap, topics=(topic,), assignor="roundrobin")
    wait_until(lambda: other.failure is not None, "the member is refused", PATIENCE_SECONDS)
    assert getattr(other.failure, "code", None) == 23  # INCONSISTENT_GROUP_PROTOCOL
    assert member.owned == places_of(topic, 2)
    assert member.failure is None


def _join_at_once(join: Join, bootstrap: str, topic: str, count: int) -> list[Member]:
    return [join("confluent-kafka", bootstrap, commits=True, topics=(topic,)) for _ in range(count)]


def test_twenty_members_join_at_once(quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join) -> None:
    topic = make_quick_topic(20)
    places = places_of(topic, 20)
    sent = spread(topic, 20, 5)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    members = _join_at_once(join, quick_bootstrap, topic, 20)
    settle(members, places)
    wait_for_values(members, values_of(sent))
    for member in members[:15]:
        member.leave()
    settle(members[15:], places)
    assert shares(members[15:]) == [4] * 5


@pytest.mark.parametrize("library", ASSIGNORS)
def test_new_partitions_are_assigned(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(2)
    members = [join(library, quick_bootstrap, topics=(topic,), metadata_age_ms=400) for _ in range(2)]
    settle(members, places_of(topic, 2))
    ConfluentAdmin(quick_bootstrap).add_partitions(topic, 6)
    settle(members, places_of(topic, 6))
    sent = spread(topic, 6, 2)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    wait_for_values(members, values_of(sent))


@pytest.mark.parametrize("library", ASSIGNORS)
def test_a_pattern_finds_topics_old_and_new(quick_bootstrap: str, join: Join, library: str) -> None:
    prefix = f"pattern-{uuid.uuid4().hex[:8]}"
    admin = ConfluentAdmin(quick_bootstrap)
    admin.create_topic(f"{prefix}-old", 2)
    admin.create_topic(f"other-{prefix}", 1)
    members = [
        join(library, quick_bootstrap, pattern=f"{prefix}-.*", metadata_age_ms=400, assignor="roundrobin")
        for _ in range(2)
    ]
    settle(members, places_of(f"{prefix}-old", 2))
    admin.create_topic(f"{prefix}-new", 2)
    settle(members, places_of(f"{prefix}-old", 2) | places_of(f"{prefix}-new", 2))


@pytest.mark.parametrize("library", ASSIGNORS)
def test_two_groups_read_the_same(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(2)
    sent = spread(topic, 2, 20)
    ConfluentClient(quick_bootstrap).produce(topic, sent)
    groups = [join(library, quick_bootstrap, topics=(topic,), group=f"{topic}-{name}") for name in "ab"]
    for member in groups:
        wait_for_values([member], values_of(sent))
        assert member.owned == places_of(topic, 2)


@pytest.mark.parametrize("library", ASSIGNORS)
def test_pause_seek_and_resume(
    quick_bootstrap: str, make_quick_topic: MakeTopic, join: Join, library: str
) -> None:
    topic = make_quick_topic(2)
    sent = spread(topic, 2, 10)
    client = ConfluentClient(quick_bootstrap)
    client.produce(topic, sent)
    member = join(library, quick_bootstrap, topics=(topic,))
    wait_for_values([member], values_of(sent))
    paused, other = (topic, 0), (topic, 1)
    member.ask(lambda consumer: consumer.pause(paused))
    more = spread(topic, 2, 3, "later ")
    client.produce(topic, more)
    wait_for_values([member], [b"later 1-0", b"later 1-1", b"later 1-2"])
    assert not any(value.startswith(b"later 0") for value in member.values)
    member.ask(lambda consumer: consumer.resume(paused))
    wait_for_values([member], values_of(more))
    count = member.values.count(b"v1-7")
    member.ask(lambda consumer: consumer.seek(other, 7))
    wait_until(lambda: member.values.count(b"v1-7") == count + 1, "offset 7 comes again")
    wait_until(lambda: member.ask(lambda consumer: consumer.position(other)) == 13, "position is the end")
