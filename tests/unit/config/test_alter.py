"""Changes of configuration: what they give and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.alter import (
    Operation,
    alter_incremental,
    validate_broker_dynamic,
    validate_topic_overrides,
)
from barnabas.config.broker import BROKER_KEYS
from barnabas.config.definition import ConfigError
from barnabas.config.topic import TOPIC_KEYS
from barnabas.errors import ErrorCode

SET, DELETE, APPEND, SUBTRACT = Operation
ITEM = st.sampled_from(["0:1", "0:2", "1:1", "2:3", "5:8"])


@pytest.mark.parametrize(
    ("current", "change", "expected"),
    [
        ({}, ("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, ("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention.ms": "5"}, ("retention.ms", DELETE, None), {}),
        ({}, ("retention.ms", DELETE, "anything"), {}),
        ({}, ("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "compact"}, ("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "compact"}),
        ({"cleanup.policy": ""}, ("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "compact"}),
        (
            {"cleanup.policy": "compact, delete"},
            ("cleanup.policy", SUBTRACT, "delete"),
            {"cleanup.policy": "compact"},
        ),
        ({}, ("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
        ({"cleanup.policy": "delete"}, ("cleanup.policy", SUBTRACT, "compact"), {"cleanup.policy": "delete"}),
    ],
)
def test_one_change(
    current: dict[str, str], change: tuple[str, Operation, str | None], expected: dict[str, str]
) -> None:
    before = dict(current)
    assert alter_incremental(current, [change], TOPIC_KEYS) == expected
    assert current == before


@given(
    st.lists(
        st.tuples(st.sampled_from([SET, APPEND, SUBTRACT, DELETE]), st.lists(ITEM, unique=True, min_size=1))
    )
)
def test_a_list_follows_a_model(changes: list[tuple[Operation, list[str]]]) -> None:
    name = "leader.replication.throttled.replicas"
    settings: dict[str, str] = {}
    model: list[str] = []
    for operation, items in changes:
        settings = alter_incremental(settings, [(name, operation, ",".join(items))], TOPIC_KEYS)
        if operation is SET:
            model = items
        elif operation is DELETE:
            model = []
        elif operation is APPEND:
            model = model + [item for item in items if item not in model]
        else:
            model = [item for item in model if item not in items]
        assert [item for item in settings.get(name, "").split(",") if item] == model


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "has no value"),
        ([("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST, "has no value"),
        ([("flush.ms", SET, "1"), ("flush.ms", DELETE, None)], ErrorCode.INVALID_REQUEST, "changed twice"),
        ([("flush.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "9 is not an operation"),
        ([("flush.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, "is not a list: use set instead of append"),
        (
            [("flush.ms", SUBTRACT, "1")],
            ErrorCode.INVALID_CONFIG,
            "is not a list: use set instead of subtract",
        ),
        ([("no.such", APPEND, "1")], ErrorCode.INVALID_CONFIG, "not a known setting"),
    ],
)
def test_a_malformed_change_is_refused(
    changes: list[tuple[str, int, str | None]], code: ErrorCode, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        alter_incremental({}, changes, TOPIC_KEYS)
    assert caught.value.code is code


def test_valid_overrides_give_the_topics_settings() -> None:
    config = validate_topic_overrides({"retention.ms": "-1"}, {"log.segment.bytes": "2000000"})
    assert (config.retention_ms, config.segment_bytes) == (-1, 2_000_000)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"no.such": "1"}, "no.such is not a topic setting"),
        ({"retention.ms": None}, "retention.ms has no value"),
        ({"retention.ms": "-2"}, "at least -1"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "must not exceed"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
        ({"compression.zstd.level": "99"}, "from -131072 to 22"),
    ],
)
def test_wrong_overrides_are_refused(overrides: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        validate_topic_overrides(overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_the_two_lags_are_compared_with_the_brokers_defaults_too() -> None:
    validate_topic_overrides({"min.compaction.lag.ms": "9"})
    with pytest.raises(ConfigError, match="must not exceed"):
        validate_topic_overrides({"min.compaction.lag.ms": "9"}, {"log.cleaner.max.compaction.lag.ms": 8})


@pytest.mark.parametrize(
    ("settings", "per_broker"),
    [
        ({"log.segment.bytes": "2000000"}, False),
        ({"log.segment.bytes": "2000000"}, True),
        ({"listeners": "PLAINTEXT://a:1"}, True),
        ({"listener.name.a.ssl.keystore.location": "/k"}, True),
        ({"listener.name.a.scram-sha-256.sasl.jaas.config": "x"}, True),
        ({"listener.name.a.max.connections": "5"}, False),
        ({"some.plugin.setting": "x"}, False),
    ],
)
def test_dynamic_settings_that_are_allowed(settings: dict[str, str], per_broker: bool) -> None:
    validate_broker_dynamic(settings, per_broker=per_broker)


@pytest.mark.parametrize(
    ("settings", "per_broker", "sentence"),
    [
        ({"num.partitions": "2"}, True, "change it in the file and restart"),
        ({"log.retention.hours": "2"}, False, "change it in the file and restart"),
        ({"listeners": "PLAINTEXT://a:1"}, False, "only for one broker"),
        ({"listener.name.a.ssl.keystore.location": "/k"}, False, "only for one broker"),
        ({"ssl.keystore.location": "/k"}, True, "listener.name.<listener>.ssl.keystore.location"),
        ({"log.segment.bytes": "2"}, True, "at least 1048576"),
        ({"listener.name.a.max.connections": "-5"}, False, "at least 0"),
    ],
)
def test_dynamic_settings_that_are_refused(settings: dict[str, str], per_broker: bool, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        validate_broker_dynamic(settings, per_broker=per_broker)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_every_dynamic_key_is_refused_or_checked_by_its_mode() -> None:
    for name, key in BROKER_KEYS.items():
        if key.mode == "read-only":
            with pytest.raises(ConfigError, match="restart"):
                validate_broker_dynamic({name: ""}, per_broker=True)
