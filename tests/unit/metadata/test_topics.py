"""Creating, deleting and growing topics, as Kafka's admin clients expect it."""

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import ZERO_UUID
from barnabas.metadata.controller import ControllerSettings
from barnabas.metadata.topics import CreatedTopic, NewPartitions, NewTopic, TopicReference

E = ErrorCode


def test_a_created_topic_is_in_the_image_when_the_answer_comes(play):
    async def story(stage):
        await stage.brokers(1)
        answers = await stage.controller.create_topics([NewTopic("a", 3, 1, configs={"retention.ms": "5"})])
        topic = stage.image.topic("a")
        assert answers == {"a": CreatedTopic("a", topic.id, 3, 1)}
        assert [(p.replicas, p.isr, p.leader, p.leader_epoch) for p in topic.partitions] == [
            ((1,), (1,), 1, 0)
        ] * 3
        assert stage.image.topic_config("a") == {"retention.ms": "5"}
        assert topic.id != ZERO_UUID

    play(story)


def test_counts_of_minus_one_are_the_defaults(play):
    async def story(stage):
        await stage.brokers(1, 2, 3)
        answers = await stage.controller.create_topics([NewTopic("a")])
        assert (answers["a"].num_partitions, answers["a"].replication_factor) == (4, 2)

    play(story, settings=ControllerSettings(num_partitions=4, replication_factor=2))


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (NewTopic("there"), E.TOPIC_ALREADY_EXISTS),
        (NewTopic(""), E.INVALID_TOPIC_EXCEPTION),
        (NewTopic(".."), E.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a/b"), E.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250), E.INVALID_TOPIC_EXCEPTION),
        (NewTopic("dotted_name"), E.INVALID_TOPIC_EXCEPTION),
        (NewTopic("__cluster_metadata"), E.INVALID_REQUEST),
        (NewTopic("a", 0), E.INVALID_PARTITIONS),
        (NewTopic("a", -2), E.INVALID_PARTITIONS),
        (NewTopic("a", 10_001), E.POLICY_VIOLATION),
        (NewTopic("a", 2**31 - 1), E.POLICY_VIOLATION),
        (NewTopic("a", 1, 0), E.INVALID_REPLICATION_FACTOR),
        (NewTopic("a", 1, -2), E.INVALID_REPLICATION_FACTOR),
        (NewTopic("a", 1, 3), E.INVALID_REPLICATION_FACTOR),
        (NewTopic("a", 1, -1, {0: [1]}), E.INVALID_REQUEST),
        (NewTopic("a", -1, 1, {0: [1]}), E.INVALID_REQUEST),
        (NewTopic("a", assignments={1: [1]}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments={0: [1], 2: [1]}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments={-1: [1], 0: [1]}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments={0: []}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments={0: [1, 1]}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments={0: [1, 9]}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments={0: [1, 2], 1: [1]}), E.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", configs={"no.such.key": "1"}), E.INVALID_CONFIG),
        (NewTopic("a", configs={"retention.ms": "soon"}), E.INVALID_CONFIG),
        (NewTopic("a", configs={"retention.ms": None}), E.INVALID_CONFIG),
    ],
    ids=str,
)
def test_an_invalid_topic_is_refused_and_the_others_are_created(play, code_of, topic, expected):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("there"), NewTopic("dotted.name")])
        companions = [] if expected is E.POLICY_VIOLATION else [NewTopic("good", 1, 1)]
        answers = await stage.controller.create_topics([topic, *companions])
        assert code_of(answers[topic.name]) is expected
        assert answers[topic.name].message
        assert set(stage.image.topics) == {"there", "dotted.name", *(new.name for new in companions)}

    play(story)


def test_names_that_collide_within_one_request_do_not_both_pass(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        answers = await stage.controller.create_topics([NewTopic("a.b"), NewTopic("a_b"), NewTopic("ab")])
        assert [code_of(answer) for answer in answers.values()] == [E.NONE, E.INVALID_TOPIC_EXCEPTION, E.NONE]

    play(story)


def test_a_collision_ends_when_the_topic_is_deleted(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a.b")])
        await stage.controller.delete_topics([TopicReference("a.b")])
        answers = await stage.controller.create_topics([NewTopic("a_b")])
        assert code_of(answers["a_b"]) is E.NONE

    play(story)


def test_a_name_given_twice_is_refused_once(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        answers = await stage.controller.create_topics([NewTopic("a"), NewTopic("b"), NewTopic("a", 2)])
        assert {name: code_of(answer) for name, answer in answers.items()} == {
            "a": E.INVALID_REQUEST,
            "b": E.NONE,
        }
        assert set(stage.image.topics) == {"b"}

    play(story)


def test_validate_only_answers_and_writes_nothing(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        before = stage.image
        answers = await stage.controller.create_topics([NewTopic("a", 2), NewTopic("!")], validate_only=True)
        assert (answers["a"].num_partitions, answers["a"].replication_factor) == (2, 1)
        assert code_of(answers["!"]) is E.INVALID_TOPIC_EXCEPTION
        assert stage.image is before

    play(story)


def test_an_assignment_is_taken_as_given(play):
    async def story(stage):
        await stage.brokers(1, 2, 3)
        answers = await stage.controller.create_topics([NewTopic("a", assignments={1: [2, 1], 0: [3, 2]})])
        assert (answers["a"].num_partitions, answers["a"].replication_factor) == (2, 2)
        partitions = stage.image.topic("a").partitions
        assert [(p.replicas, p.leader) for p in partitions] == [((3, 2), 3), ((2, 1), 2)]

    play(story)


def test_a_fenced_replica_is_assigned_out_of_sync_and_does_not_lead(play, code_of):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.fence_broker(1)
        answers = await stage.controller.create_topics(
            [NewTopic("a", assignments={0: [1, 2]}), NewTopic("b", assignments={0: [1]})]
        )
        partition = stage.image.partition("a", 0)
        assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (2,), 2)
        assert code_of(answers["b"]) is E.INVALID_REPLICA_ASSIGNMENT

    play(story)


def test_topics_are_deleted_by_name_and_by_id(play):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a", configs={"retention.ms": "5"}), NewTopic("b")])
        a, b = stage.image.topic("a"), stage.image.topic("b")
        answers = await stage.controller.delete_topics([TopicReference("a"), TopicReference(id=b.id)])
        assert answers == [a, b]
        assert not stage.image.topics and not stage.image.configs

    play(story)


def test_a_deletion_that_names_nothing_is_refused(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a"), NewTopic("b")])
        a, b = stage.image.topic("a"), stage.image.topic("b")
        answers = await stage.controller.delete_topics(
            [
                TopicReference("nope"),
                TopicReference(id=b"?" * 16),
                TopicReference("a", a.id),
                TopicReference(),
                TopicReference(id=ZERO_UUID),
                TopicReference("b", ZERO_UUID),
            ]
        )
        assert [code_of(answer) for answer in answers] == [
            E.UNKNOWN_TOPIC_OR_PARTITION,
            E.UNKNOWN_TOPIC_ID,
            E.INVALID_REQUEST,
            E.INVALID_REQUEST,
            E.INVALID_REQUEST,
            E.NONE,
        ]
        assert answers[5] == b
        assert set(stage.image.topics) == {"a"}

    play(story)


def test_a_topic_named_twice_in_a_deletion_stays(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a")])
        topic = stage.image.topic("a")
        answers = await stage.controller.delete_topics([TopicReference("a"), TopicReference(id=topic.id)])
        assert [code_of(answer) for answer in answers] == [E.INVALID_REQUEST] * 2
        assert stage.image.topic("a") is topic

    play(story)


def test_a_topic_created_again_has_a_new_id_and_no_old_configs(play):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a", configs={"retention.ms": "5"})])
        old = stage.image.topic("a").id
        await stage.controller.delete_topics([TopicReference("a")])
        await stage.controller.create_topics([NewTopic("a")])
        assert stage.image.topic("a").id != old
        assert stage.image.topic_by_id(old) is None
        assert stage.image.topic_config("a") == {}

    play(story)


def test_a_topic_grows_to_the_wanted_total(play):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", 1, 2)])
        first = stage.image.partition("a", 0)
        answers = await stage.controller.create_partitions(
            [NewPartitions("a", 3, [[2, 1], [1, 2]]), NewPartitions("nope", 3)]
        )
        assert answers["a"] == 3
        assert answers["nope"].code is E.UNKNOWN_TOPIC_OR_PARTITION
        partitions = stage.image.topic("a").partitions
        assert partitions[0] is first
        assert [(p.replicas, p.leader) for p in partitions[1:]] == [((2, 1), 2), ((1, 2), 1)]
        await stage.controller.create_partitions([NewPartitions("a", 5)])
        assert [len(p.replicas) for p in stage.image.topic("a").partitions] == [2] * 5

    play(story)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (NewPartitions("a", 2), E.INVALID_PARTITIONS),
        (NewPartitions("a", 1), E.INVALID_PARTITIONS),
        (NewPartitions("a", 0), E.INVALID_PARTITIONS),
        (NewPartitions("a", -1), E.INVALID_PARTITIONS),
        (NewPartitions("a", 10_003), E.POLICY_VIOLATION),
        (NewPartitions("a", 4, [[1]]), E.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("a", 3, []), E.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("a", 3, [[9]]), E.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("a", 3, [[1, 2]]), E.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
def test_invalid_new_partitions_are_refused(play, code_of, request_, expected):
    async def story(stage):
        await stage.brokers(1, 2)
        await stage.controller.create_topics([NewTopic("a", 2, 1)])
        answers = await stage.controller.create_partitions([request_])
        assert code_of(answers["a"]) is expected
        assert len(stage.image.topic("a").partitions) == 2

    play(story)


def test_new_partitions_can_be_validated_and_not_repeated(play, code_of):
    async def story(stage):
        await stage.brokers(1)
        await stage.controller.create_topics([NewTopic("a")])
        assert await stage.controller.create_partitions([NewPartitions("a", 2)], validate_only=True) == {
            "a": 2
        }
        answers = await stage.controller.create_partitions([NewPartitions("a", 2), NewPartitions("a", 3)])
        assert code_of(answers["a"]) is E.INVALID_REQUEST
        assert len(stage.image.topic("a").partitions) == 1

    play(story)
