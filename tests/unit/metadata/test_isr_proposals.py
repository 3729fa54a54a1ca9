"""Which in-sync sets a leader may propose, and which are refused."""

from typing import Any

import pytest
from tests.unit.metadata.world import RULES, TOPIC_ID, World

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata import isr_changes
from barnabas.metadata.isr_changes import ANY_EPOCH, IsrProposal
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import RECOVERED, RECOVERING


@pytest.fixture
def world() -> World:
    world = World(1, 2, 3, 4)
    world.topic((1, 2, 3))
    return world


def test_a_proposal_changes_the_isr_and_raises_only_the_partition_epoch(world: World) -> None:
    shrunk = world.in_sync(1, 2)
    assert shrunk is not None and shrunk == world.partition()
    assert (shrunk.isr, shrunk.leader_epoch, shrunk.partition_epoch) == ((1, 2), 0, 1)
    assert world.in_sync(1, 2, 3) == world.partition()
    assert (world.leads(), world.partition().partition_epoch) == ((1, (1, 2, 3), 0), 2)


def test_the_same_isr_again_changes_nothing(world: World) -> None:
    before = world.image
    assert world.in_sync(1, 2, 3) == world.partition()
    assert world.image.offset == before.offset


@pytest.mark.parametrize(
    ("members", "changes", "expected"),
    [
        ((1,), {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ((1,), {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ((1,), {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ((1,), {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 2), {"leader": 2}, ErrorCode.INVALID_REQUEST),
        ((2,), {}, ErrorCode.INVALID_REQUEST),
        ((2,), {"leader": 3}, ErrorCode.INVALID_REQUEST),
        ((2, 3), {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 1), {}, ErrorCode.INVALID_REQUEST),
        ((1, 4), {}, ErrorCode.INVALID_REQUEST),
        ((), {}, ErrorCode.INVALID_REQUEST),
        ((1,), {"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ((1,), {"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ((1,), {"topic_id": bytes(16)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ((1,), {"index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_refused(world: World, members: Any, changes: dict[str, Any], expected: ErrorCode) -> None:
    before = world.image
    index = changes.pop("index", 0)
    partition = world.partition()
    isr = tuple((member, ANY_EPOCH) for member in members)
    values = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
    leader = changes.pop("leader", 1)
    proposal = IsrProposal(**{"topic_id": TOPIC_ID, "index": index, "isr": isr, **values, **changes})
    assert world.propose(leader, proposal) is expected
    assert world.image.offset == before.offset


def test_a_replica_joins_only_with_the_epoch_of_its_current_start(world: World) -> None:
    """KIP-903: the leader has seen broker 3 catch up, but broker 3 has restarted since."""
    seen = world.image.brokers[3].epoch
    world.in_sync(1, 2)
    world.start(3)
    own = world.image.brokers
    stale = ((1, own[1].epoch), (2, own[2].epoch), (3, seen))
    assert world.in_sync(1, 2, 3, isr=stale) is ErrorCode.INELIGIBLE_REPLICA
    assert world.in_sync(1, 2, 3) == world.partition()


def test_a_replica_that_is_dead_or_starting_does_not_join(world: World) -> None:
    world.in_sync(1, 2)
    world.stop(3)
    assert world.in_sync(1, 2, 3) is ErrorCode.INELIGIBLE_REPLICA
    world.register(3)
    assert world.in_sync(1, 2, 3) is ErrorCode.INELIGIBLE_REPLICA


def test_a_leader_that_was_replaced_changes_nothing(world: World) -> None:
    old = world.partition()
    world.stop(1)
    world.start(1)
    late = IsrProposal(TOPIC_ID, 0, old.leader_epoch, old.partition_epoch, ((1, ANY_EPOCH),))
    assert world.propose(1, late) is ErrorCode.FENCED_LEADER_EPOCH
    assert world.leads() == (2, (2, 3), 1)


def test_a_leader_elected_unclean_says_when_it_has_recovered() -> None:
    world = World(1, 2)
    world.topic((1, 2), unclean_leader_election_enable="true")
    world.in_sync(1)
    world.stop(1)
    world.start(1)
    assert world.partition().leader_recovery_state == RECOVERING
    both = world.in_sync(2, 1, leader_recovery_state=RECOVERING)
    assert both is ErrorCode.INVALID_REQUEST
    world.in_sync(2, 1)
    assert (world.leads(), world.partition().leader_recovery_state) == ((2, (2, 1), 1), RECOVERED)


def test_the_second_proposal_for_a_partition_in_one_request_is_too_late(world: World) -> None:
    proposal = IsrProposal(TOPIC_ID, 0, 0, 0, ((1, ANY_EPOCH),))
    epoch = world.image.brokers[1].epoch
    decision = isr_changes.alter_partitions(world.image, 1, epoch, [proposal, proposal], RULES)
    assert decision.result[1] is ErrorCode.INVALID_UPDATE_VERSION
    assert len(decision.records) == 1


def test_an_earlier_start_of_a_broker_is_refused_as_a_whole(world: World) -> None:
    with pytest.raises(KafkaError) as caught:
        isr_changes.alter_partitions(world.image, 1, world.image.brokers[1].epoch - 1, [], RULES)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def leave(world: World, broker_id: int) -> PartitionImage | ErrorCode | None:
    """The broker's log has failed: it proposes the ISR without itself."""
    partition = world.partition()
    isr = tuple((member, ANY_EPOCH) for member in partition.isr if member != broker_id)
    return world.propose(
        broker_id, IsrProposal(TOPIC_ID, 0, partition.leader_epoch, partition.partition_epoch, isr)
    )


def test_a_leader_that_leaves_the_isr_gives_its_place_to_another_member(world: World) -> None:
    assert leave(world, 1) is ErrorCode.NEW_LEADER_ELECTED
    assert (world.leads(), world.partition().elr) == ((2, (2, 3), 1), ())


def test_a_follower_may_leave_the_isr_by_itself_and_the_last_member_may_not(world: World) -> None:
    leave(world, 3)
    leave(world, 2)
    assert (world.leads(), world.partition().elr) == ((1, (1,), 0), ())
    assert leave(world, 1) is ErrorCode.INVALID_REQUEST
