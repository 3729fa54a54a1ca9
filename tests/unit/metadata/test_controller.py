"""The controller decides on the newest image, one decision at a time, and only with the leadership."""

import asyncio

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.records import FeatureRecord, TopicRecord
from barnabas.metadata.store import Snapshot, StoreUnavailable
from barnabas.metadata.topics import NewTopic


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
