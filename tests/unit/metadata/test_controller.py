"""The controller decides on the newest image, one decision at a time, and only with the leadership."""

import asyncio

import pytest

from barnabas.config.alter import Operation
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.brokers import Heartbeat
from barnabas.metadata.configs import ConfigChange
from barnabas.metadata.controller import ControllerSettings
from barnabas.metadata.isr_changes import IsrProposal
from barnabas.metadata.parts import TOPIC_RESOURCE
from barnabas.metadata.records import FeatureRecord, TopicRecord
from barnabas.metadata.store import Snapshot, StoreUnavailable
from barnabas.metadata.topics import NewTopic
from barnabas.metadata.upkeep import run_upkeep


def test_only_one_of_many_concurrent_requests_creates_the_topic(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        answers = await asyncio.gather(*(stage.controller.create_topics([NewTopic("a")]) for _ in range(10)))
        codes = sorted(code_of(answer["a"]).name for answer in answers)
        assert codes == ["NONE"] + ["TOPIC_ALREADY_EXISTS"] * 9

    play(story)


def test_a_controller_without_leadership_says_so(play):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.step_down()
        assert not stage.controller.active
        with pytest.raises(KafkaError) as caught:
            await stage.controller.create_topics([NewTopic("a")])
        assert caught.value.code is ErrorCode.NOT_CONTROLLER

    play(story)


def test_a_controller_whose_epoch_is_over_cannot_write(play):
    async def story(stage):
        await stage.brokers(1)
        # Another controller appends while the decision is written, before this one sees it.
        append = stage.store.append

        async def deposed_meanwhile(records, expected_offset, epoch):
            stage.store.election.end_leadership()
            return await append(records, expected_offset, epoch)

        stage.store.append = deposed_meanwhile
        with pytest.raises(KafkaError) as caught:
            await stage.controller.create_topics([NewTopic("a")])
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert stage.image.topic("a") is None

    play(story)


def test_after_a_conflict_the_decision_is_made_again(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        append = stage.store.append

        async def overtaken_once(records, expected_offset, epoch):
            stage.store.append = append
            await append([TopicRecord("a", b"1" * 16)], expected_offset, epoch)
            return await append(records, expected_offset, epoch)

        stage.store.append = overtaken_once
        answers = await stage.controller.create_topics([NewTopic("a"), NewTopic("b")])
        assert code_of(answers["a"]) is ErrorCode.TOPIC_ALREADY_EXISTS
        assert code_of(answers["b"]) is ErrorCode.NONE
        assert set(stage.image.topics) == {"a", "b"}

    play(story)


def test_a_controller_that_is_always_overtaken_gives_up(play):
    async def story(stage):
        await stage.brokers(1)
        append = stage.store.append

        async def overtaken(records, expected_offset, epoch):
            await append([FeatureRecord("f", expected_offset)], expected_offset, epoch)
            return await append(records, expected_offset, epoch)

        stage.store.append = overtaken
        with pytest.raises(KafkaError) as caught:
            await stage.controller.create_topics([NewTopic("a")])
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT

    play(story)


def test_a_store_that_cannot_write_is_a_storage_error_and_leaves_the_image(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        before = stage.image
        append = stage.store.append

        async def full(records, expected_offset, epoch):
            raise StoreUnavailable("the disk is full")

        stage.store.append = full
        with pytest.raises(KafkaError) as caught:
            await stage.controller.create_topics([NewTopic("a")])
        assert (caught.value.code, caught.value.message) == (
            ErrorCode.KAFKA_STORAGE_ERROR,
            "the disk is full",
        )
        assert stage.image is before
        stage.store.append = append
        assert code_of((await stage.controller.create_topics([NewTopic("a")]))["a"]) is ErrorCode.NONE

    play(story)


def test_a_cancelled_request_leaves_the_controller_usable(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        request = asyncio.ensure_future(stage.controller.create_topics([NewTopic("a", 2)]))
        await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])
        answers = await stage.controller.create_topics([NewTopic("b")])
        assert code_of(answers["b"]) is ErrorCode.NONE
        created = stage.image.topic("a")
        assert created is None or len(created.partitions) == 2

    play(story)


def test_a_snapshot_is_written_when_the_log_has_grown(play):
    names = {f"topic-{number}" for number in range(30)}

    async def story(stage):
        await stage.brokers(1)
        for name in sorted(names):
            await stage.controller.create_topics([NewTopic(name, configs={"retention.ms": "5"})])

    async def after(stage):
        assert isinstance((await stage.store.read(0))[0], Snapshot)
        assert set(stage.image.topics) == names
        assert stage.image.topic_config("topic-7") == {"retention.ms": "5"}
        assert stage.image.offset == 2 + 3 * len(names)

    play(story, snapshot_bytes_min=1000)
    play(after)


def test_a_snapshot_that_fails_does_not_fail_the_request(play, code_of, caplog):
    async def story(stage):
        await stage.brokers(1)

        async def full(image, epoch):
            raise StoreUnavailable("the disk is full")

        stage.store.snapshot = full
        for name in ("a", "b", "c"):
            answers = await stage.controller.create_topics([NewTopic(name, 20)])
            assert code_of(answers[name]) is ErrorCode.NONE

    play(story, snapshot_bytes_min=1000)
    assert "cannot write a metadata snapshot: the disk is full" in caplog.text


def test_a_heartbeat_does_not_wait_for_all_of_a_large_request(play):
    async def story(stage):
        await stage.brokers(1)
        epoch = await stage.controller.register_broker(stage.registration(2))
        order = []

        async def create():
            await stage.controller.create_topics([NewTopic(f"topic-{number}", 50) for number in range(10)])
            order.append("topics")

        async def beat():
            await asyncio.sleep(0)
            assert stage.controller.queue_length == 1
            await stage.controller.heartbeat(Heartbeat(2, epoch, epoch))
            order.append("heartbeat")

        await asyncio.gather(create(), beat())
        assert order == ["heartbeat", "topics"]
        assert stage.controller.queue_length == 0

    play(story)


def test_another_min_isr_empties_the_eligible_leader_replicas(play):
    async def story(stage):
        await stage.brokers(1, 2)
        configs = {"min.insync.replicas": "2"}
        await stage.controller.create_topics(
            [NewTopic(name, assignments={0: [1, 2]}, configs=configs) for name in ("a", "b")]
        )
        await stage.controller.fence_broker(2)
        assert stage.image.partition("a", 0).elr == stage.image.partition("b", 0).elr == (2,)
        change = ConfigChange("min.insync.replicas", Operation.SET, "1")
        await stage.controller.alter_configs([((TOPIC_RESOURCE, "a"), [change])])
        assert (stage.image.partition("a", 0).elr, stage.image.partition("b", 0).elr) == ((), (2,))

    play(story)


def test_a_topic_that_allows_unclean_elections_gets_a_leader_at_once(play):
    async def story(stage):
        epochs = await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        topic = stage.image.topics["a"]
        alone = IsrProposal(topic.id, 0, 0, 0, ((1, epochs[1]),))
        await stage.controller.alter_partitions(1, epochs[1], [alone])
        await stage.controller.fence_broker(1)
        assert not stage.image.partition("a", 0).has_leader
        change = ConfigChange("unclean.leader.election.enable", Operation.SET, "true")
        await stage.controller.alter_configs([((TOPIC_RESOURCE, "a"), [change])])
        assert stage.image.partition("a", 0).leader == 2
        assert (stage.controller.elections.leaders, stage.controller.elections.unclean) == (2, 1)

    play(story)


def test_each_unclean_election_is_counted_and_a_warning(play, caplog):
    async def story(stage):
        epochs = await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        change = ConfigChange("unclean.leader.election.enable", Operation.SET, "true")
        await stage.controller.alter_configs([((TOPIC_RESOURCE, "a"), [change])])
        topic = stage.image.topics["a"]
        alone = IsrProposal(topic.id, 0, 0, 0, ((1, epochs[1]),))
        await stage.controller.alter_partitions(1, epochs[1], [alone])
        await stage.controller.fence_broker(1)
        assert stage.image.partition("a", 0).leader == 2
        assert "unclean election: a-0 is led by broker 2" in caplog.text
        # The leader has not changed the ISR yet, so the partition is still recovering.
        caplog.clear()
        await stage.brokers(1)
        await stage.controller.fence_broker(2)
        assert stage.image.partition("a", 0).leader == 1
        assert stage.controller.elections.unclean == 2
        assert "unclean election: a-0 is led by broker 1" in caplog.text
        # Its return is no election of somebody out of sync.
        await stage.controller.fence_broker(1)
        await stage.brokers(1)
        assert stage.image.partition("a", 0).leader == 1
        assert stage.controller.elections.unclean == 2

    play(story)


def test_leaders_are_balanced_from_time_to_time(play):
    async def story(stage):
        epochs = await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        await stage.brokers(1)
        topic = stage.image.topics["a"]
        both = IsrProposal(topic.id, 0, 1, 1, ((2, epochs[2]), (1, stage.image.brokers[1].epoch)))
        await stage.controller.alter_partitions(2, epochs[2], [both])
        times = []

        async def sleep(seconds):
            times.append((seconds, stage.image.partition("a", 0).leader))
            if len(times) == 3:
                await asyncio.Event().wait()

        upkeep = asyncio.ensure_future(run_upkeep(stage.controller, sleep))
        await asyncio.wait_for(stage.follower.until(lambda image: image.partition("a", 0).leader == 1), 10)
        upkeep.cancel()
        assert times[0] == (300.0, 2)

    play(story, settings=ControllerSettings(balance_seconds=300.0))


def test_periodic_work_goes_on_after_a_failure(play, caplog):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.step_down()
        rounds, third = [], asyncio.Event()

        async def sleep(seconds):
            rounds.append(seconds)
            if len(rounds) == 3:
                third.set()
                await asyncio.Event().wait()

        upkeep = asyncio.ensure_future(run_upkeep(stage.controller, sleep))
        await asyncio.wait_for(third.wait(), 10)
        upkeep.cancel()
        assert "elect_unclean_leaders: NOT_CONTROLLER" in caplog.text

    play(story, settings=ControllerSettings(unclean_election_seconds=1.0))
