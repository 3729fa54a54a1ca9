"""Replicas spread over racks and brokers, and a living broker leads."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import BrokerImage
from barnabas.metadata.placement import place_replicas


def broker(number: int, rack: str | None = None, *, fenced: bool = False) -> BrokerImage:
    return BrokerImage(number, 0, bytes(16), (), rack, fenced)


def test_one_broker_holds_everything() -> None:
    assert place_replicas([broker(7)], 3, 1, random.Random(1)) == [(7,), (7,), (7,)]


def test_leaders_take_turns() -> None:
    placed = place_replicas([broker(number) for number in range(3)], 6, 3, random.Random(1))
    assert Counter(replicas[0] for replicas in placed) == {0: 2, 1: 2, 2: 2}
    assert all(sorted(replicas) == [0, 1, 2] for replicas in placed)


def test_the_start_is_random() -> None:
    brokers = [broker(number) for number in range(3)]
    firsts = {place_replicas(brokers, 1, 1, random.Random(seed))[0] for seed in range(50)}
    assert firsts == {(0,), (1,), (2,)}


def test_no_rack_has_two_replicas_while_another_has_none() -> None:
    brokers = [broker(number, rack) for number, rack in enumerate("AABBCC")]
    for replicas in place_replicas(brokers, 12, 3, random.Random(1)):
        assert sorted(brokers[number].rack or "" for number in replicas) == ["A", "B", "C"]


def test_brokers_of_a_rack_take_turns() -> None:
    brokers = [broker(number, rack) for number, rack in enumerate("AABB")]
    placed = place_replicas(brokers, 8, 2, random.Random(1))
    assert Counter(number for replicas in placed for number in replicas) == {0: 4, 1: 4, 2: 4, 3: 4}


def test_a_fenced_broker_gets_a_replica_only_when_all_living_ones_have_one() -> None:
    brokers = [broker(0, fenced=True), broker(1), broker(2)]
    assert all(0 not in replicas for replicas in place_replicas(brokers, 9, 2, random.Random(1)))
    assert all(replicas[2] == 0 for replicas in place_replicas(brokers, 9, 3, random.Random(1)))


def test_too_high_a_replication_factor_is_refused() -> None:
    with pytest.raises(KafkaError) as caught:
        place_replicas([broker(1), broker(2)], 1, 3, random.Random(1))
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_without_a_living_broker_nothing_is_placed() -> None:
    with pytest.raises(KafkaError) as caught:
        place_replicas([broker(1, fenced=True)], 1, 1, random.Random(1))
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


racks = st.sampled_from([None, "A", "B", "C"])


@given(
    st.lists(st.tuples(racks, st.booleans()), min_size=1, max_size=8),
    st.integers(1, 12),
    st.integers(1, 8),
    st.integers(),
)
def test_any_placement_is_legal(
    brokers: list[tuple[str | None, bool]], partitions: int, factor: int, seed: int
) -> None:
    images = [broker(number, rack, fenced=fenced) for number, (rack, fenced) in enumerate(brokers)]
    try:
        placed = place_replicas(images, partitions, factor, random.Random(seed))
    except KafkaError:
        assert factor > len(images) or all(image.fenced for image in images)
        return
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert not images[replicas[0]].fenced


def test_a_broker_that_shuts_down_gets_no_replica() -> None:
    brokers = [broker(1), broker(2), replace(broker(3), in_controlled_shutdown=True)]
    assert set().union(*place_replicas(brokers, 6, 2, random.Random(1))) == {1, 2}
    with pytest.raises(KafkaError) as caught:
        place_replicas(brokers, 1, 3, random.Random(1))
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
