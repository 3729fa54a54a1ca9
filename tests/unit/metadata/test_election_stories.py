"""Who leads when brokers come and go: the order of replicas, ELR, last known leader, unclean elections."""

import pytest
from tests.unit.metadata.world import RULES, World

from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata import brokers, settling
from barnabas.metadata.brokers import HeartbeatAnswer
from barnabas.metadata.elections import balance_leaders
from barnabas.metadata.partition_changes import Election
from barnabas.metadata.records import NO_LEADER, RECOVERED, RECOVERING, BrokerRecord, ConfigRecord
from barnabas.metadata.settling import settle
from barnabas.metadata.store import BrokerRegistration


def test_the_next_leader_is_the_first_replica_of_the_assignment_that_is_in_sync_and_alive() -> None:
    world = World(1, 2, 3)
    world.topic((3, 1, 2))
    # The order of the ISR does not matter, only that of the assignment.
    world.in_sync(2, 1, 3)
    world.stop(3)
    assert world.leads() == (1, (2, 1), 1)
    world.stop(1)
    assert world.leads() == (2, (2,), 2)


def test_a_follower_that_dies_leaves_the_isr_and_the_leader_epoch_stays() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2, 3))
    world.stop(2)
    assert world.leads() == (1, (1, 3), 0)
    assert world.partition().partition_epoch == 1


def test_a_replica_out_of_sync_does_not_lead() -> None:
    world = World(1, 2)
    world.topic((1, 2))
    world.in_sync(1)
    world.stop(1)
    assert world.leads() == (NO_LEADER, (), 1)
    assert world.partition().elr == (1,)
    world.start(1)
    assert world.leads() == (1, (1,), 2)


def test_all_sessions_end_at_once_and_every_broker_comes_back() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2, 3), min_insync_replicas="2")
    world.stop(1, 2, 3)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (1, 2, 3))
    world.start(3)
    assert world.leads() == (3, (3,), 2)
    # The others are still eligible: below min.insync.replicas nothing is committed.
    assert world.partition().elr == (1, 2)
    world.start(1)
    world.in_sync(3, 1)
    assert world.partition().elr == ()


def test_the_last_in_sync_that_lost_its_tail_does_not_win_over_a_replica_that_has_more() -> None:
    """KIP-966: broker 1 was alone in the ISR, below min.insync.replicas, and crashed."""
    world = World(1, 2, 3)
    world.topic((1, 2, 3), min_insync_replicas="2")
    world.stop(3)
    world.stop(2)
    assert (world.leads(), world.partition().elr) == ((1, (1,), 0), (2,))
    world.stop(1)
    assert (world.leads(), world.partition().elr) == ((NO_LEADER, (), 1), (1, 2))
    world.start(1, clean=False)
    assert (world.leads(), world.partition().elr) == ((NO_LEADER, (), 1), (2,))
    world.start(2)
    assert (world.leads(), world.partition().elr) == ((2, (2,), 2), ())
    assert world.partition().leader_recovery_state == RECOVERED


def test_after_a_clean_stop_the_last_in_sync_leads_again() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2, 3), min_insync_replicas="2")
    world.stop(3)
    world.stop(2)
    world.stop(1)
    world.start(1)
    assert (world.leads(), world.partition().elr) == ((1, (1,), 2), (2,))


def test_the_last_known_leader_leads_again_when_nobody_is_eligible() -> None:
    """With min.insync.replicas of 1 only the last leader has every record, whatever it has lost."""
    world = World(1, 2)
    world.topic((1, 2))
    world.stop(2)
    world.stop(1)
    assert world.partition().last_known_elr == (1,)
    world.start(2)
    assert not world.partition().has_leader
    world.register(1, clean=False)
    assert (world.partition().elr, world.partition().last_known_elr) == ((), (1,))
    world.beat(1)
    partition = world.partition()
    assert world.leads() == (1, (1,), 2)
    assert (partition.leader_recovery_state, partition.last_known_elr) == (RECOVERING, ())


def test_the_isr_that_is_large_enough_again_empties_the_elr() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2, 3), min_insync_replicas="2")
    world.stop(2, 3)
    assert world.partition().elr == (2, 3)
    world.start(3)
    assert (world.in_sync(1, 3), world.partition().elr) == (world.partition(), ())


@pytest.mark.parametrize("is_allowed", [False, True])
def test_an_unclean_election_only_where_it_is_allowed(is_allowed: bool) -> None:
    world = World(1, 2)
    world.topic((1, 2), unclean_leader_election_enable=str(is_allowed).lower())
    world.in_sync(1)
    world.stop(1)
    partition = world.partition()
    if is_allowed:
        assert world.leads() == (2, (2,), 1)
        assert (partition.leader_recovery_state, partition.elr) == (RECOVERING, ())
    else:
        assert (partition.leader, partition.elr) == (NO_LEADER, (1,))


def test_unclean_elections_are_allowed_later() -> None:
    world = World(1, 2)
    world.topic((1, 2))
    world.in_sync(1)
    world.stop(1)
    world.image = world.image.apply([ConfigRecord(2, "a", "unclean.leader.election.enable", "true")])
    world.decide(settle(world.image, RULES))
    assert world.leads() == (2, (2,), 2)


def test_an_operator_elects_an_unclean_leader() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2))
    world.in_sync(1)
    world.stop(1)
    assert world.elect(Election.PREFERRED) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    world.stop(2)
    assert world.elect(Election.UNCLEAN) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    world.start(2)
    assert world.elect(Election.UNCLEAN) is ErrorCode.NONE
    assert world.leads() == (2, (2,), 2)
    assert world.elect(Election.UNCLEAN) is ErrorCode.ELECTION_NOT_NEEDED


def test_the_preferred_replica_leads_again_when_it_is_in_sync() -> None:
    world = World(1, 2)
    world.topic((1, 2), (2, 1))
    world.stop(1)
    world.start(1)
    world.decide(balance_leaders(world.image, RULES))
    assert world.leads() == (2, (2,), 1)
    world.in_sync(2, 1)
    assert not world.decide(balance_leaders(world.image, RULES))
    assert world.leads() == (1, (2, 1), 2)
    assert world.leads(1) == (2, (2,), 0)


def test_a_controlled_shutdown_moves_leaderships_before_the_broker_may_stop() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2, 3), (2, 1, 3))
    answer = world.beat(1, wants_shutdown=True)
    assert answer == HeartbeatAnswer(is_caught_up=True, is_fenced=False, should_shut_down=False)
    assert world.image.alive(1) and not world.image.active(1)
    assert (world.leads(0), world.leads(1)) == ((2, (2, 3), 1), (2, (2, 3), 0))
    # It gets no new leadership and does not join an ISR, although it is alive.
    assert world.in_sync(2, 3, 1) is ErrorCode.INELIGIBLE_REPLICA
    world.stop(2)
    assert world.leads(1) == (3, (3,), 1)
    assert world.beat(1, wants_shutdown=True) == HeartbeatAnswer(True, True, True)
    world.stop(1)
    world.start(1)
    assert world.image.active(1)


def test_a_broker_that_is_not_needed_may_stop_at_once() -> None:
    world = World(1, 2)
    world.topic((1,))
    assert world.beat(2, wants_shutdown=True).should_shut_down


def test_a_broker_leaves_the_isrs_before_it_may_stop() -> None:
    """Otherwise nothing is committed from its stop until the leaders find that it is gone."""
    world = World(1, 2)
    world.topic((1, 2))
    assert not world.beat(2, wants_shutdown=True).should_shut_down
    assert world.leads() == (1, (1,), 0)
    assert world.beat(2, wants_shutdown=True).should_shut_down


def test_a_controlled_shutdown_gives_up_some_leaderships_with_each_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "LEADERSHIPS_PER_CHANGE", 2)
    world = World(1, 2)
    world.topic(*[(1, 2)] * 5, (2, 1))
    led = []
    while not world.beat(1, wants_shutdown=True).should_shut_down:
        led.append(sum(world.leads(index)[0] == 1 for index in range(5)))
        # What another event settles meanwhile does not include the broker that shuts down.
        assert not settle(world.image, RULES).records
    assert led == [3, 1, 0]
    assert [world.leads(index) for index in range(5)] == [(2, (2,), 1)] * 5
    assert world.leads(5) == (2, (2,), 0)


def test_partitions_without_a_leader_are_settled_first() -> None:
    world = World(1, 2)
    world.topic((2, 1), (2, 1), (1, 2), (1, 2))
    world.image = world.image.apply(brokers.fence_brokers(world.image, {1}, RULES).records[:1])
    first = settle(world.image, RULES)
    world.decide(first)
    assert first.result
    assert [world.leads(index) for index in range(4)] == [(2, (2, 1), 0)] * 2 + [(2, (2,), 1)] * 2
    second = settle(world.image, RULES)
    world.decide(second)
    assert not second.result
    assert [world.leads(index) for index in range(2)] == [(2, (2,), 0)] * 2


def test_a_broker_shuts_down_although_it_has_a_partition_alone() -> None:
    world = World(1, 2)
    world.topic((1,), (2,))
    assert not world.beat(1, wants_shutdown=True).should_shut_down
    assert (world.leads(0), world.leads(1)) == ((NO_LEADER, (), 1), (2, (2,), 0))
    assert world.beat(1, wants_shutdown=True).should_shut_down


def test_the_last_in_sync_may_shut_down_and_stays_eligible() -> None:
    world = World(1, 2)
    world.topic((1, 2))
    world.in_sync(1)
    assert not world.beat(1, wants_shutdown=True).should_shut_down
    assert (world.leads(), world.partition().elr) == ((NO_LEADER, (), 1), (1,))
    assert world.beat(1, wants_shutdown=True).should_shut_down


def test_a_partition_whose_in_sync_replicas_end_while_they_shut_down_gets_a_leader_again() -> None:
    world = World(1, 2, 3)
    world.topic((1, 2, 3))
    # Both are about to shut down when the leader is lost: neither may take over.
    for broker_id in (2, 3):
        world.image = world.image.apply((shutting_down(world, broker_id),))
    world.stop(1)
    assert world.leads() == (NO_LEADER, (2, 3), 1)
    world.stop(2, 3)
    for broker_id in (2, 3, 1):
        world.start(broker_id, clean=False)
    assert world.leads()[0] in (2, 3)


def shutting_down(world: World, broker_id: int) -> BrokerRecord:
    """The record of a broker that has asked for a controlled shutdown."""
    broker = world.image.brokers[broker_id]
    place = (broker.id, broker.epoch, broker.incarnation, broker.listeners)
    return BrokerRecord(*place, fenced=False, in_controlled_shutdown=True)


def test_a_broker_that_restarts_quickly_leaves_leadership_first_but_keeps_what_it_has_alone() -> None:
    world = World(1, 2)
    world.topic((1, 2), (1,))
    world.register(1)
    assert (world.leads(0), world.leads(1)) == ((2, (2,), 1), (1, (1,), 0))
    world.beat(1)
    assert (world.leads(0), world.leads(1)) == ((2, (2,), 1), (1, (1,), 0))
    world.register(1, clean=False)
    assert world.leads(1) == (1, (1,), 1)
    # When its session is seen to end, nobody leads its partition.
    world.stop(1)
    assert world.leads(1) == (NO_LEADER, (), 2)
    world.start(1, clean=False)
    assert world.leads(1) == (1, (1,), 3)
    assert world.partition(1).leader_recovery_state == RECOVERED


def test_large_changes_are_made_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "PARTITIONS_PER_CHANGE", 2)
    world = World(1, 2)
    world.topic(*[(1, 2)] * 5)
    registration = BrokerRegistration(1, random_uuid(), ())
    sizes = []
    for _ in range(3):
        decision = brokers.register_broker(world.image, registration, RULES)
        sizes.append(len(decision.records))
        epoch = world.decide(decision)
        # The old incarnation is fenced with the first portion, and leads nothing that has changed.
        assert not world.image.alive(1)
    assert sizes == [3, 2, 2]
    assert epoch == world.image.brokers[1].epoch == 15
    assert [world.leads(index) for index in range(5)] == [(2, (2,), 1)] * 5


def test_settling_is_done_in_portions_and_completed_by_the_next_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "PARTITIONS_PER_CHANGE", 2)
    world = World(1, 2)
    world.topic(*[(1, 2)] * 5)
    world.image = world.image.apply(brokers.fence_brokers(world.image, {1}, RULES).records[:1])
    first = settle(world.image, RULES)
    assert (len(first.records), first.result) == (2, True)
    world.decide(first)
    del world.sessions[1]
    world.reconcile()
    assert [world.leads(index) for index in range(5)] == [(2, (2,), 1)] * 5
