"""Brokers register, are fenced and come back; leadership follows."""

import dataclasses

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.brokers import Heartbeat, HeartbeatAnswer
from barnabas.metadata.records import NO_LEADER, BrokerRecord
from barnabas.metadata.topics import NewTopic


def leader(stage, name="a"):
    partition = stage.image.partition(name, 0)
    return partition.leader, partition.isr, partition.leader_epoch


def test_each_registration_has_a_higher_epoch(play):
    async def story(stage):
        first = (await stage.brokers(1))[1]
        second = (await stage.brokers(1))[1]
        assert second > first
        assert stage.image.brokers[1].epoch == second

    play(story)


def test_registering_the_same_incarnation_again_changes_nothing(play):
    async def story(stage):
        registration = stage.registration(1)
        epoch = await stage.controller.register_broker(registration)
        before = stage.image
        assert await stage.controller.register_broker(registration) == epoch
        assert stage.image is before
        moved = dataclasses.replace(registration, rack="r")
        assert await stage.controller.register_broker(moved) == epoch
        assert stage.image.brokers[1].rack == "r"

    play(story)


def test_a_broker_is_fenced_until_its_heartbeat_has_its_registration(play):
    async def story(stage):
        await stage.brokers(2)
        epoch = await stage.controller.register_broker(stage.registration(1))
        assert not stage.image.alive(1)
        early = await stage.controller.heartbeat(Heartbeat(1, epoch, epoch - 1))
        assert early == HeartbeatAnswer(is_caught_up=False, is_fenced=True)
        assert not stage.image.alive(1)
        assert await stage.beat(1) == HeartbeatAnswer(is_caught_up=True, is_fenced=False)
        assert stage.image.alive(1)
        before = stage.image
        assert not (await stage.beat(1)).is_fenced
        assert stage.image is before

    play(story)


@pytest.mark.parametrize(
    ("broker_id", "skew", "expected"),
    [(1, -1, ErrorCode.STALE_BROKER_EPOCH), (2, 0, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_a_heartbeat_of_an_earlier_start_is_refused(play, broker_id, skew, expected):
    async def story(stage):
        epoch = await stage.controller.register_broker(stage.registration(1))
        with pytest.raises(KafkaError) as caught:
            await stage.controller.heartbeat(Heartbeat(broker_id, epoch + skew, 100))
        assert caught.value.code is expected
        assert not stage.image.alive(1)

    play(story)


def test_a_restart_without_fencing_keeps_leader_and_epoch_of_an_only_replica(play):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a")])

    async def again(stage):
        await stage.controller.register_broker(stage.registration(1))
        assert not stage.image.alive(1)
        assert leader(stage) == (1, (1,), 0)
        await stage.beat(1)
        assert leader(stage) == (1, (1,), 0)

    play(story)
    play(again)


def test_after_an_unclean_stop_the_epoch_of_an_only_replica_rises(play):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1], 1: [2]})])
        await stage.broker(dataclasses.replace(stage.registration(1), previous_epoch=-1))
        assert leader(stage) == (1, (1,), 1)
        assert stage.image.partition("a", 1).leader_epoch == 0

    play(story)


def test_the_last_replica_is_eligible_and_takes_over_again(play):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a")])
        await stage.controller.fence_broker(1)
        assert leader(stage) == (NO_LEADER, (), 1)
        assert stage.image.partition("a", 0).elr == (1,)
        assert not stage.image.alive(1)
        await stage.brokers(1)
        assert leader(stage) == (1, (1,), 2)
        assert stage.image.partition("a", 0).elr == ()
        assert stage.image.alive(1)

    play(story)


def test_a_fenced_leader_is_followed_by_the_next_replica_in_sync(play):
    async def story(stage):
        await stage.brokers(1, 2, 3)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2, 3]})])
        await stage.controller.fence_broker(1)
        assert leader(stage) == (2, (2, 3), 1)
        await stage.controller.fence_broker(3)
        assert leader(stage) == (2, (2,), 1)
        # A broker that was out of sync does not take over on its return.
        await stage.brokers(1)
        assert leader(stage) == (2, (2,), 1)
        await stage.controller.fence_broker(2)
        assert leader(stage) == (NO_LEADER, (), 2)
        await stage.brokers(3)
        assert leader(stage) == (NO_LEADER, (), 2)
        await stage.brokers(2)
        assert leader(stage) == (2, (2,), 3)

    play(story)


def test_a_new_incarnation_leaves_leadership_and_isr_although_its_session_was_not_seen_to_end(play):
    async def story(stage):
        await stage.brokers(1, 2, 3)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2, 3]})])
        await stage.controller.register_broker(stage.registration(1))
        assert leader(stage) == (2, (2, 3), 1)
        await stage.beat(1)
        assert leader(stage) == (2, (2, 3), 1)

    play(story)


def test_fencing_twice_and_unregistering(play):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        await stage.controller.fence_broker(1)
        before = stage.image
        await stage.controller.fence_broker(1)
        assert stage.image is before
        await stage.controller.unregister_broker(1)
        assert set(stage.image.brokers) == {2}
        for refused in (stage.controller.fence_broker, stage.controller.unregister_broker):
            with pytest.raises(KafkaError) as caught:
                await refused(1)
            assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED

    play(story)


def test_sessions_decide_who_is_registered_and_fenced(play):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        newcomer, returned = stage.registration(3), stage.registration(2)
        await stage.controller.reconcile_sessions({3: newcomer, 2: returned})
        assert all(broker.fenced for broker in stage.image.brokers.values())
        assert stage.image.brokers[2].incarnation == returned.incarnation
        assert leader(stage) == (NO_LEADER, (), 2)
        await stage.beat(2)
        assert leader(stage) == (2, (2,), 3)

    play(story)


def test_a_broker_that_returns_from_an_unclean_stop_is_not_trusted_before_one_that_is_gone(play):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        returned = dataclasses.replace(stage.registration(2), previous_epoch=-1)
        await stage.controller.reconcile_sessions({2: returned})
        await stage.beat(2)
        assert leader(stage) == (NO_LEADER, (), 1)
        await stage.brokers(1)
        assert leader(stage) == (1, (1,), 2)

    play(story)


def test_a_new_controller_completes_what_the_old_one_began(play):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        broker = stage.image.brokers[1]
        # The old controller fenced broker 1, and died before it changed the partitions.
        record = BrokerRecord(1, broker.epoch, broker.incarnation, broker.listeners, fenced=True)
        await stage.store.append([record], stage.image.offset, stage.store.election.epoch)
        registered = {2: stage.living(2)}
        await stage.controller.reconcile_sessions(registered)
        assert leader(stage) == (2, (2,), 1)

    play(story)


def test_producer_ids_are_never_given_twice(play):
    blocks = []

    async def story(stage):
        epoch = (await stage.brokers(1))[1]
        for _ in range(2):
            blocks.append(await stage.controller.allocate_producer_ids(1, epoch))

    play(story)
    play(story)
    assert [(block.first_id, block.count) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
        (3000, 1000),
    ]


@pytest.mark.parametrize(
    ("broker_id", "skew", "expected"),
    [(1, -1, ErrorCode.STALE_BROKER_EPOCH), (2, 0, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_only_a_current_broker_gets_producer_ids(play, broker_id, skew, expected):
    async def story(stage):
        epoch = (await stage.brokers(1))[1]
        with pytest.raises(KafkaError) as caught:
            await stage.controller.allocate_producer_ids(broker_id, epoch + skew)
        assert caught.value.code is expected
        assert stage.image.next_producer_id == 0

    play(story)
