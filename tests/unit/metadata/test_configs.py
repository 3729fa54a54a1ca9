"""Configs of topics, brokers and the cluster default: replaced as a whole, or changed one by one."""

import pytest

from barnabas.config.alter import Operation
from barnabas.errors import ErrorCode
from barnabas.metadata.configs import ConfigChange
from barnabas.metadata.topics import NewTopic

E = ErrorCode
TOPIC, BROKER = (2, "a"), (4, "1")
CLUSTER = (4, "")


def set_(key, value):
    return ConfigChange(key, Operation.SET, value)


async def prepare(stage):
    await stage.brokers(1)
    configs = {"retention.ms": "5", "segment.bytes": "1048576"}
    await stage.controller.create_topics([NewTopic("a", configs=configs)])


def test_replacing_drops_what_is_not_given(play):
    async def story(stage):
        await prepare(stage)
        assert await stage.controller.replace_configs([(TOPIC, {"retention.ms": "6"})]) == [None]
        assert stage.image.topic_config("a") == {"retention.ms": "6"}
        assert await stage.controller.replace_configs([(TOPIC, {})]) == [None]
        assert stage.image.configs == {}

    play(story)


def test_an_incremental_change_leaves_the_rest(play):
    async def story(stage):
        await prepare(stage)
        changes = [set_("retention.ms", "6"), ConfigChange("segment.bytes", Operation.DELETE)]
        assert await stage.controller.alter_configs([(TOPIC, changes)]) == [None]
        assert stage.image.topic_config("a") == {"retention.ms": "6"}

    play(story)


def test_lists_are_appended_to_and_subtracted_from(play):
    async def story(stage):
        await prepare(stage)
        append = [(TOPIC, [ConfigChange("cleanup.policy", Operation.APPEND, "delete")])]
        assert await stage.controller.alter_configs(append) == [None]
        # The list begins with the inherited value, which is the broker's own setting.
        assert stage.image.topic_config("a")["cleanup.policy"] == "compact,delete"
        subtract = [(TOPIC, [ConfigChange("cleanup.policy", Operation.SUBTRACT, "compact")])]
        assert await stage.controller.alter_configs(subtract) == [None]
        assert stage.image.topic_config("a")["cleanup.policy"] == "delete"

    play(story, properties={"log.cleanup.policy": "compact"})


def test_broker_and_cluster_default_are_resources_of_their_own(play):
    async def story(stage):
        await prepare(stage)
        answers = await stage.controller.alter_configs(
            [(BROKER, [set_("log.cleaner.threads", "2")]), (CLUSTER, [set_("log.cleaner.threads", "3")])]
        )
        assert answers == [None, None]
        assert stage.image.config(*BROKER) == {"log.cleaner.threads": "2"}
        assert stage.image.config(*CLUSTER) == {"log.cleaner.threads": "3"}

    play(story)


@pytest.mark.parametrize(
    ("resource", "change", "expected"),
    [
        ((2, "nope"), set_("retention.ms", "1"), E.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, set_("no.such.key", "1"), E.INVALID_CONFIG),
        (TOPIC, set_("retention.ms", "soon"), E.INVALID_CONFIG),
        (TOPIC, set_("retention.ms", None), E.INVALID_REQUEST),
        (TOPIC, ConfigChange("retention.ms", Operation.APPEND, "1"), E.INVALID_CONFIG),
        (TOPIC, ConfigChange("no.such.key", Operation.APPEND, "1"), E.INVALID_CONFIG),
        (TOPIC, ConfigChange("retention.ms", 7, "1"), E.INVALID_REQUEST),
        ((4, "9"), set_("log.cleaner.threads", "1"), E.BROKER_ID_NOT_REGISTERED),
        ((4, "01"), set_("log.cleaner.threads", "1"), E.BROKER_ID_NOT_REGISTERED),
        ((4, "one"), set_("log.cleaner.threads", "1"), E.INVALID_REQUEST),
        ((4, "-1"), set_("log.cleaner.threads", "1"), E.INVALID_REQUEST),
        (BROKER, set_("log.cleaner.threads", "many"), E.INVALID_REQUEST),
        (BROKER, set_("node.id", "2"), E.INVALID_REQUEST),
        (CLUSTER, set_("node.id", "2"), E.INVALID_REQUEST),
        ((8, "1"), set_("root", "DEBUG"), E.INVALID_REQUEST),
        ((16, "s"), set_("metrics", "x"), E.INVALID_REQUEST),
        ((32, "g"), set_("consumer.session.timeout.ms", "1"), E.INVALID_CONFIG),
        ((32, "g"), set_("consumer.session.timeout.ms", "60001"), E.INVALID_CONFIG),
        ((32, "g"), set_("share.session.timeout.ms", "50000"), E.INVALID_CONFIG),
        ((32, "g"), ConfigChange("consumer.session.timeout.ms", Operation.APPEND, "1"), E.INVALID_CONFIG),
        ((32, ""), set_("consumer.session.timeout.ms", "50000"), E.INVALID_REQUEST),
        ((99, "g"), set_("k", "1"), E.INVALID_REQUEST),
    ],
    ids=str,
)
def test_an_invalid_change_is_refused_and_the_others_are_made(play, code_of, resource, change, expected):
    async def story(stage):
        await prepare(stage)
        await stage.controller.create_topics([NewTopic("b")])
        before = stage.image.config(*resource)
        answers = await stage.controller.alter_configs(
            [(resource, [change]), ((2, "b"), [set_("retention.ms", "7")])]
        )
        assert [code_of(answer) for answer in answers] == [expected, E.NONE]
        assert answers[0].message
        assert stage.image.config(*resource) == before
        assert stage.image.topic_config("b") == {"retention.ms": "7"}

    play(story)


def test_one_bad_change_of_a_resource_stops_all_of_its_changes(play, code_of):
    async def story(stage):
        await prepare(stage)
        before = stage.image
        changes = [set_("retention.ms", "6"), set_("segment.bytes", "no")]
        answers = await stage.controller.alter_configs([(TOPIC, changes)])
        assert code_of(answers[0]) is E.INVALID_CONFIG
        assert stage.image is before

    play(story)


def test_values_that_contradict_each_other_are_refused(play, code_of):
    async def story(stage):
        await prepare(stage)
        await stage.controller.alter_configs([(TOPIC, [set_("min.compaction.lag.ms", "10")])])
        answers = await stage.controller.alter_configs([(TOPIC, [set_("max.compaction.lag.ms", "5")])])
        assert code_of(answers[0]) is E.INVALID_CONFIG
        answers = await stage.controller.alter_configs([(CLUSTER, [set_("log.cleaner.threads", "1000")])])
        assert code_of(answers[0]) is E.INVALID_REQUEST

    play(story)


def test_a_resource_or_key_given_twice_is_refused(play, code_of):
    async def story(stage):
        await prepare(stage)
        before = stage.image
        twice = [(TOPIC, [set_("retention.ms", "6")]), (TOPIC, [set_("segment.bytes", "2097152")])]
        assert list(map(code_of, await stage.controller.alter_configs(twice))) == [E.INVALID_REQUEST] * 2
        answers = await stage.controller.alter_configs([(TOPIC, [set_("retention.ms", "6")] * 2)])
        assert list(map(code_of, answers)) == [E.INVALID_REQUEST]
        assert stage.image is before

    play(story)


@pytest.mark.parametrize(
    ("configs", "expected"), [({"retention.ms": None}, E.INVALID_REQUEST), ({"nope": "1"}, E.INVALID_CONFIG)]
)
def test_an_invalid_replacement_is_refused(play, code_of, configs, expected):
    async def story(stage):
        await prepare(stage)
        before = stage.image
        answers = await stage.controller.replace_configs([(TOPIC, configs)])
        assert code_of(answers[0]) is expected
        assert stage.image is before

    play(story)


def test_validate_only_changes_nothing_and_no_change_writes_nothing(play):
    async def story(stage):
        await prepare(stage)
        before = stage.image
        change = [(TOPIC, [set_("retention.ms", "6")])]
        assert await stage.controller.alter_configs(change, validate_only=True) == [None]
        assert await stage.controller.replace_configs([(TOPIC, {})], validate_only=True) == [None]
        assert await stage.controller.alter_configs([(TOPIC, [set_("retention.ms", "5")])]) == [None]
        assert stage.image is before

    play(story)
