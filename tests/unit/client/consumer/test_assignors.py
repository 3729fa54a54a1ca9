"""Properties of every assignor, for any subscriptions; and the formats that members exchange."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    Plan,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
    assignors_of,
)
from barnabas.client.consumer.subscriptions import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.client.errors import ConfigError
from barnabas.client.types import TopicPartition

TOPICS = ("a", "b", "c")
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 6))
subscribed = st.frozensets(st.sampled_from(TOPICS), min_size=1).map(sorted).map(tuple)
partitions = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 7))
subscriptions = st.builds(
    Subscription,
    topics=subscribed,
    owned=st.lists(partitions, unique=True, max_size=5).map(tuple),
    generation=st.integers(-1, 4),
    instance_id=st.none() | st.text(max_size=3),
)
groups = st.dictionaries(st.sampled_from(["m1", "m2", "m3", "m4"]), subscriptions, min_size=1)
EAGER = [RangeAssignor(), RoundRobinAssignor(), StickyAssignor()]


def all_subscribed(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> set[TopicPartition]:
    topics = {topic for member in members.values() for topic in member.topics}
    return {
        TopicPartition(topic, index) for topic in topics & counts.keys() for index in range(counts[topic])
    }


def assigned(plan: Plan) -> list[TopicPartition]:
    return sorted(each for given in plan.values() for each in given)


@pytest.mark.parametrize("assignor", EAGER, ids=lambda assignor: assignor.name)
@given(counts=counts, members=groups)
def test_every_partition_has_one_reader_that_subscribed_to_it(
    assignor: Assignor, counts: dict[str, int], members: dict[str, Subscription]
) -> None:
    plan = assignor.assign(counts, members)
    assert plan.keys() == members.keys()
    assert assigned(plan) == sorted(all_subscribed(counts, members))
    for member, given_to_it in plan.items():
        assert {each.topic for each in given_to_it} <= set(members[member].topics)


@given(counts=counts, names=st.sets(st.sampled_from(["m1", "m2", "m3", "m4"]), min_size=1))
def test_equal_members_get_equal_shares(counts: dict[str, int], names: set[str]) -> None:
    members = {name: Subscription(TOPICS) for name in names}
    for assignor in (RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()):
        sizes = [len(given_to_it) for given_to_it in assignor.assign(counts, members).values()]
        assert max(sizes) - min(sizes) <= 1
    for topic, count in counts.items():
        plan = RangeAssignor().assign({topic: count}, members)
        sizes = [len(given_to_it) for given_to_it in plan.values()]
        assert max(sizes) - min(sizes) <= 1


def test_range_assigns_consecutive_partitions_and_static_members_come_first() -> None:
    members = {"z": Subscription(("a",), instance_id="first"), "a": Subscription(("a",))}
    plan = RangeAssignor().assign({"a": 5}, members)
    assert [each.partition for each in plan["z"]] == [0, 1, 2]
    assert [each.partition for each in plan["a"]] == [3, 4]


def test_round_robin_assigns_partitions_in_turn() -> None:
    plan = RoundRobinAssignor().assign(
        {"a": 3, "b": 2}, {"x": Subscription(TOPICS), "y": Subscription(TOPICS)}
    )
    assert [str(each) for each in plan["x"]] == ["a-0", "a-2", "b-1"]
    assert [str(each) for each in plan["y"]] == ["a-1", "b-0"]


def owning(
    assignor: Assignor, plan: Plan, topics: tuple[str, ...], generation: int
) -> dict[str, Subscription]:
    return {
        member: Subscription(
            topics,
            tuple(given_to_it) if assignor.is_cooperative else (),
            generation,
            None,
            assignor.user_data(given_to_it, generation),
        )
        for member, given_to_it in plan.items()
    }


@pytest.mark.parametrize("assignor", [StickyAssignor(), CooperativeStickyAssignor()], ids=lambda a: a.name)
@given(counts=counts, size=st.integers(1, 4))
def test_sticky_moves_only_what_a_new_member_needs(
    assignor: Assignor, counts: dict[str, int], size: int
) -> None:
    before = assignor.assign(counts, {f"m{index}": Subscription(TOPICS) for index in range(size)})
    members = owning(assignor, before, TOPICS, 1) | {"new": Subscription(TOPICS)}
    after = assignor.assign(counts, members)
    for member, had in before.items():
        assert set(after[member]) <= set(had)
        assert len(after[member]) >= len(assigned(before)) // (size + 1)


@given(counts=counts, members=groups)
def test_cooperative_never_assigns_what_another_member_still_has(
    counts: dict[str, int], members: dict[str, Subscription]
) -> None:
    taken: set[TopicPartition] = set()
    distinct = {}
    for name, member in members.items():
        owned = tuple(each for each in member.owned if each not in taken)
        taken |= set(owned)
        distinct[name] = member._replace(owned=owned)
    plan = CooperativeStickyAssignor().assign(counts, distinct)
    owners = {each: name for name, member in distinct.items() for each in member.owned}
    for name, given_to_it in plan.items():
        assert all(owners.get(each, name) == name for each in given_to_it)
    # Members that revoked partitions join again. After some rebalances all are assigned and stay so.
    for generation in range(5, 15):
        settled = {
            name: member._replace(owned=tuple(plan[name]), generation=generation)
            for name, member in distinct.items()
        }
        plan = CooperativeStickyAssignor().assign(counts, settled)
    assert assigned(plan) == sorted(all_subscribed(counts, members))
    assert {name: set(had.owned) for name, had in settled.items()} == {
        name: set(given_to_it) for name, given_to_it in plan.items()
    }


def test_the_newer_generation_wins() -> None:
    owned = (TopicPartition("a", 0),)
    members = {"old": Subscription(("a",), owned, 1), "new": Subscription(("a",), owned, 2)}
    assert StickyAssignor().assign({"a": 1}, members) == {"old": [], "new": list(owned)}


def test_sticky_user_data_is_kafkas_format() -> None:
    data = StickyAssignor().user_data([TopicPartition("ab", 1), TopicPartition("ab", 2)], 7)
    assert data == bytes.fromhex("00000001 0002 6162 00000002 00000001 00000002 00000007")


@given(member=subscriptions)
def test_subscriptions_are_decoded_as_they_were_encoded(member: Subscription) -> None:
    decoded = decode_subscription(encode_subscription(member), member.instance_id)
    assert decoded._replace(owned=()) == member._replace(topics=tuple(sorted(member.topics)), owned=())
    assert set(decoded.owned) == set(member.owned)


def test_subscriptions_of_other_versions_can_be_read() -> None:
    oldest = bytes.fromhex("0000 00000001 0001 61 ffffffff")
    assert decode_subscription(oldest) == Subscription(("a",))
    newer = bytes.fromhex("0063") + encode_subscription(Subscription(("a",)))[2:] + b"more"
    assert decode_subscription(newer) == Subscription(("a",))


@given(given=st.lists(partitions, unique=True))
def test_assignments_are_decoded_as_they_were_encoded(given: list[TopicPartition]) -> None:
    assert sorted(decode_assignment(encode_assignment(given))) == sorted(given)
    assert decode_assignment(b"") == []


def test_assignors_are_given_by_kafkas_names_or_as_objects() -> None:
    own = RangeAssignor()
    java = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assignors = assignors_of(["roundrobin", java, own])
    assert [each.name for each in assignors] == ["roundrobin", "cooperative-sticky", "range"]
    assert assignors[2] is own
    with pytest.raises(ConfigError, match="known assignors are range"):
        assignors_of(["alphabetical"])
    with pytest.raises(ConfigError, match="at least one"):
        assignors_of([])
