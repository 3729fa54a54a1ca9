"""What server-side assignors guarantee: every partition once, even shares, few moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.assignors import ASSIGNORS, Assignment, MemberSpec
from barnabas.groups.assignors.range import assign_ranges
from barnabas.groups.assignors.uniform import assign_uniformly


def topic(number: int) -> bytes:
    return number.to_bytes(16, "big")


def partitions(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(each, number) for each, numbers in assignment.items() for number in numbers}


def sizes(shares: dict[str, Assignment]) -> list[int]:
    return sorted(len(partitions(share)) for share in shares.values())


COUNTS = st.dictionaries(st.integers(1, 5).map(topic), st.integers(1, 9), min_size=1)
TOPIC_SETS = st.frozensets(st.integers(1, 6).map(topic))
NAMES = st.integers(0, 7).map("m{}".format)


@st.composite
def groups(draw: st.DrawFn, same_topics: bool = False) -> tuple[dict[str, MemberSpec], dict[bytes, int]]:
    """Members with any current assignment, also partitions that do not exist or that two members have."""
    counts = draw(COUNTS)
    common = draw(TOPIC_SETS)
    had = st.dictionaries(
        st.integers(1, 6).map(topic), st.frozensets(st.integers(0, 10), min_size=1), max_size=3
    )
    members = {
        name: MemberSpec(
            common if same_topics else draw(TOPIC_SETS),
            draw(had),
            draw(st.sampled_from([None, f"static-{name}"])),
        )
        for name in draw(st.sets(NAMES, min_size=1))
    }
    return members, counts


def after(members: dict[str, MemberSpec], shares: dict[str, Assignment]) -> dict[str, MemberSpec]:
    return {
        name: MemberSpec(member.topic_ids, shares[name], member.instance_id)
        for name, member in members.items()
    }


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_each_partition_goes_to_exactly_one_subscriber(
    name: str, group: tuple[dict[str, MemberSpec], dict[bytes, int]]
) -> None:
    members, counts = group
    shares = ASSIGNORS[name](members, counts)
    assert shares.keys() == members.keys()
    given_out = [partition for share in shares.values() for partition in partitions(share)]
    subscribed = frozenset[bytes]().union(*(member.topic_ids for member in members.values()))
    expected = {(each, number) for each in subscribed & counts.keys() for number in range(counts[each])}
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == expected
    for member_id, share in shares.items():
        assert share.keys() <= members[member_id].topic_ids
        assert all(share.values()), "a topic without partitions must be left out"


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_the_order_of_members_and_topics_does_not_matter(
    name: str, group: tuple[dict[str, MemberSpec], dict[bytes, int]]
) -> None:
    members, counts = group
    again = ASSIGNORS[name](dict(reversed(members.items())), dict(reversed(counts.items())))
    assert again == ASSIGNORS[name](members, counts)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_an_assignment_is_kept_when_nothing_changes(
    name: str, group: tuple[dict[str, MemberSpec], dict[bytes, int]]
) -> None:
    members, counts = group
    shares = ASSIGNORS[name](members, counts)
    assert ASSIGNORS[name](after(members, shares), counts) == shares


# ---- uniform


@given(group=groups(same_topics=True))
def test_shares_of_the_same_topics_differ_by_one_at_most(
    group: tuple[dict[str, MemberSpec], dict[bytes, int]],
) -> None:
    members, counts = group
    shares = sizes(assign_uniformly(members, counts))
    assert shares[-1] - shares[0] <= 1


@given(group=groups(same_topics=True), data=st.data())
def test_no_more_partitions_move_than_balance_needs(
    group: tuple[dict[str, MemberSpec], dict[bytes, int]], data: st.DataObject
) -> None:
    members, counts = group
    before = after(members, assign_uniformly(members, counts))
    gone = data.draw(st.sets(st.sampled_from(sorted(before)), max_size=len(before) - 1))
    common = next(iter(before.values())).topic_ids
    survivors = {name: member for name, member in before.items() if name not in gone}
    newcomers = {f"new-{number}": MemberSpec(common) for number in range(data.draw(st.integers(0, 3)))}
    shares = assign_uniformly(survivors | newcomers, counts)

    total = sum(counts[each] for each in common & counts.keys())
    quota, longer = divmod(total, len(shares))
    had = [len(partitions(member.assignment)) for member in survivors.values()]
    best = sum(min(size, quota) for size in had) + min(longer, sum(size > quota for size in had))
    kept = sum(
        len(partitions(shares[name]) & partitions(member.assignment)) for name, member in survivors.items()
    )
    assert kept == best


@given(group=groups())
def test_no_partition_could_go_to_a_subscriber_with_two_less(
    group: tuple[dict[str, MemberSpec], dict[bytes, int]],
) -> None:
    members, counts = group
    shares = assign_uniformly(members, counts)
    for member_id, share in shares.items():
        for each in share:
            readers = [name for name, member in members.items() if each in member.topic_ids]
            fewest = min(len(partitions(shares[name])) for name in readers)
            assert len(partitions(shares[member_id])) - fewest <= 1


def test_a_topic_is_spread_over_the_members() -> None:
    members = {name: MemberSpec(frozenset({topic(1), topic(2)})) for name in ("a", "b")}
    shares = assign_uniformly(members, {topic(1): 2, topic(2): 2})
    assert all(share.keys() == {topic(1), topic(2)} for share in shares.values())


def test_a_static_member_is_known_by_its_instance_id() -> None:
    """Ranges follow the order of members, so a new member id must not shuffle them."""
    both = frozenset({topic(1)})
    first = assign_ranges({"z": MemberSpec(both, instance_id="i1"), "a": MemberSpec(both)}, {topic(1): 4})
    again = assign_ranges({"b": MemberSpec(both, instance_id="i1"), "a": MemberSpec(both)}, {topic(1): 4})
    assert first["z"] == again["b"] == {topic(1): frozenset({0, 1})}


# ---- range


@given(group=groups())
def test_ranges_are_consecutive_and_the_same_for_equal_topics(
    group: tuple[dict[str, MemberSpec], dict[bytes, int]],
) -> None:
    members, counts = group
    shares = assign_ranges(members, counts)
    for share in shares.values():
        for numbers in share.values():
            assert max(numbers) - min(numbers) + 1 == len(numbers)
    for one, count in counts.items():
        for other in counts:
            alike = {name for name, m in members.items() if one in m.topic_ids} == {
                name for name, m in members.items() if other in m.topic_ids
            }
            if alike and counts[other] == count:
                assert all(share.get(one) == share.get(other) for share in shares.values())


def test_the_first_members_get_the_longer_ranges() -> None:
    members = {name: MemberSpec(frozenset({topic(1)})) for name in ("a", "b", "c")}
    shares = assign_ranges(members, {topic(1): 5})
    assert [sorted(shares[name][topic(1)]) for name in "abc"] == [[0, 1], [2, 3], [4]]
