"""Partitions move between brokers: add, catch up, switch, remove. Each story ends in one of the two sets."""

import pytest
from tests.unit.metadata.world import World

from barnabas.errors import ErrorCode
from barnabas.metadata.records import NO_LEADER


@pytest.fixture
def world() -> World:
    world = World(1, 2, 3, 4, 5, 6)
    world.topic((1, 2, 3))
    return world


def replicas(world: World) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    partition = world.partition()
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_add_catch_up_switch_remove(world: World) -> None:
    assert world.move((4, 5, 3)) is ErrorCode.NONE
    assert replicas(world) == ((4, 5, 3, 1, 2), (4, 5), (1, 2))
    assert world.leads() == (1, (1, 2, 3), 0)
    world.in_sync(1, 2, 3, 4)
    assert world.partition().is_reassigning
    # The last one to catch up ends the move; the leader was one of those that go.
    assert world.in_sync(1, 2, 3, 4, 5) is ErrorCode.NEW_LEADER_ELECTED
    assert replicas(world) == ((4, 5, 3), (), ())
    assert world.leads() == (4, (3, 4, 5), 1)


def test_a_leader_that_stays_gets_a_new_epoch_when_replicas_are_removed(world: World) -> None:
    """The new epoch ends the fetches of the removed replicas."""
    world.move((1, 4, 5))
    world.in_sync(1, 2, 3, 4, 5)
    assert (replicas(world), world.leads()) == (((1, 4, 5), (), ()), (1, (1, 4, 5), 1))


def test_only_the_order_of_the_replicas_changes_at_once(world: World) -> None:
    world.move((3, 2, 1))
    assert (replicas(world), world.leads()) == (((3, 2, 1), (), ()), (1, (1, 2, 3), 0))


def test_fewer_and_more_replicas(world: World) -> None:
    world.move((2,))
    assert (replicas(world), world.leads()) == (((2,), (), ()), (2, (2,), 1))
    world.move((2, 5))
    assert replicas(world) == ((2, 5), (5,), ())
    world.in_sync(2, 5)
    assert (replicas(world), world.leads()) == (((2, 5), (), ()), (2, (2, 5), 1))


def test_cancel_before_the_switch(world: World) -> None:
    world.move((4, 5, 6))
    world.in_sync(1, 2, 3, 4)
    assert world.move(None) is ErrorCode.NONE
    assert set(world.partition().replicas) == {1, 2, 3}
    assert world.partition().adding_replicas == world.partition().removing_replicas == ()
    assert world.leads() == (1, (1, 2, 3), 1)


def test_cancel_after_the_switch_finds_nothing_to_cancel(world: World) -> None:
    world.move((4, 5, 6))
    world.in_sync(1, 2, 3, 4, 5, 6)
    assert world.move(None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert replicas(world) == ((4, 5, 6), (), ())


def test_cancel_when_only_new_replicas_are_in_sync_would_lose_records(world: World) -> None:
    world.move((4, 5, 6))
    world.in_sync(1, 4)
    world.stop(1)
    assert world.leads() == (4, (4,), 1)
    assert world.move(None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert world.partition().is_reassigning
    world.start(2)
    world.in_sync(4, 2)
    assert world.move(None) is ErrorCode.NONE
    assert (set(world.partition().replicas), world.leads()) == ({1, 2, 3}, (2, (2,), 2))


def test_a_new_replica_that_is_down_delays_the_end(world: World) -> None:
    world.stop(4)
    assert world.move((4, 2, 3)) is ErrorCode.NONE
    assert world.in_sync(1, 2, 3, 4) is ErrorCode.INELIGIBLE_REPLICA
    assert replicas(world) == ((4, 2, 3, 1), (4,), (1,))
    world.start(4)
    assert world.in_sync(1, 2, 3, 4) is ErrorCode.NEW_LEADER_ELECTED
    assert (replicas(world), world.leads()) == (((4, 2, 3), (), ()), (4, (2, 3, 4), 1))


def test_replicas_that_are_down_are_moved_away(world: World) -> None:
    world.stop(1, 2)
    assert world.leads() == (3, (3,), 1)
    world.move((3, 4, 5))
    world.in_sync(3, 4, 5)
    assert (replicas(world), world.leads()) == (((3, 4, 5), (), ()), (3, (3, 4, 5), 2))


def test_the_leader_dies_during_the_move(world: World) -> None:
    world.move((4, 5, 6))
    world.in_sync(1, 2, 3, 4)
    world.stop(1)
    # The target comes first in the assignment, so its replica leads.
    assert world.leads() == (4, (2, 3, 4), 1)
    world.in_sync(2, 3, 4, 5, 6)
    assert (replicas(world), world.leads()) == (((4, 5, 6), (), ()), (4, (4, 5, 6), 2))


def test_all_brokers_die_during_the_move_and_it_goes_on(world: World) -> None:
    world.move((4, 5, 6))
    world.stop(1, 2, 3, 4, 5, 6)
    assert world.leads() == (NO_LEADER, (), 1)
    for broker_id in (1, 2, 3, 4, 5, 6):
        world.start(broker_id)
    leader = world.partition().leader
    assert leader in (1, 2, 3)
    world.in_sync(leader, 4, 5, 6)
    assert replicas(world) == ((4, 5, 6), (), ())


def test_a_second_move_replaces_the_first_and_its_cancel_returns_to_the_original(world: World) -> None:
    world.move((4, 5, 6))
    world.in_sync(1, 2, 3, 4)
    assert world.move((4, 2, 5)) is ErrorCode.NONE
    # Broker 6 was only in the first target.
    assert replicas(world) == ((4, 2, 5, 1, 3), (4, 5), (1, 3))
    assert world.leads() == (1, (1, 2, 3, 4), 1)
    world.move(None)
    assert (set(world.partition().replicas), world.partition().isr) == ({1, 2, 3}, (1, 2, 3))


def test_a_second_move_that_drops_the_only_replicas_in_sync_is_refused(world: World) -> None:
    world.move((4, 5, 6))
    world.in_sync(1, 4)
    world.stop(1)
    assert world.move((5, 2, 3)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert world.leads() == (4, (4,), 1)


def test_a_second_move_back_to_the_original(world: World) -> None:
    world.move((4, 5, 6))
    world.move((1, 2, 3))
    assert (replicas(world), world.leads()) == (((1, 2, 3), (), ()), (1, (1, 2, 3), 1))


@pytest.mark.parametrize("target", [(), (1, 1), (1, 9)])
def test_refused(world: World, target: tuple[int, ...]) -> None:
    assert world.move(target) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert not world.partition().is_reassigning


def test_unknown_partition(world: World) -> None:
    assert world.move((1,), index=3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
