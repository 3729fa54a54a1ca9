"""Text to typed value and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.broker import BROKER_KEYS
from barnabas.config.definition import ConfigError
from barnabas.config.keys_topic import TOPIC_KEYS
from barnabas.config.parsing import parse, render


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("retention.ms", " 5000 ", 5000),
        ("retention.ms", "-1", -1),
        ("retention.ms", "+7", 7),
        ("preallocate", "TRUE", True),
        ("preallocate", " false", False),
        ("min.cleanable.dirty.ratio", "1e-3", 0.001),
        ("min.cleanable.dirty.ratio", ".5", 0.5),
        ("cleanup.policy", "compact , delete", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("cleanup.policy", "delete,delete", ("delete",)),
        ("compression.gzip.level", "-1", -1),
        ("compression.zstd.level", "-131072", -131072),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
        ("leader.replication.throttled.replicas", "*", ("*",)),
    ],
)
def test_topic_values(name: str, text: str, expected: object) -> None:
    assert parse(TOPIC_KEYS[name], text) == expected


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("retention.ms", "-2", "at least -1"),
        ("retention.ms", "week", "a whole number"),
        ("retention.ms", "1_000", "a whole number"),
        ("retention.ms", "", "a whole number"),
        ("retention.ms", "9" * 5000, "a whole number"),
        ("retention.ms", str(2**63), "a whole number of 64 bits"),
        ("segment.bytes", str(2**31), "a whole number of 32 bits"),
        ("segment.bytes", "1000", "at least 1048576"),
        ("preallocate", "yes", "true or false"),
        ("min.cleanable.dirty.ratio", "1.5", "from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "a number"),
        ("cleanup.policy", "purge", "a list of compact, delete"),
        ("cleanup.policy", "delete,", "a list of compact, delete"),
        ("compression.gzip.level", "0", "from 1 to 9, or -1"),
        ("compression.lz4.level", "18", "from 1 to 17"),
        ("compression.zstd.level", "23", "from -131072 to 22"),
        ("compression.type", "none", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("message.timestamp.type", "createtime", "one of CreateTime, LogAppendTime"),
        ("flush.messages", "0", "at least 1"),
        ("follower.replication.throttled.replicas", "1-2", "partition:broker"),
    ],
)
def test_a_wrong_value_is_refused_by_name_with_what_is_allowed(name: str, text: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(TOPIC_KEYS[name], text)
    assert name in str(caught.value)
    assert allowed in str(caught.value)


def test_a_wrong_password_is_not_repeated() -> None:
    impossible = BROKER_KEYS["ssl.key.password"]._replace(check=BROKER_KEYS["ssl.client.auth"].check)
    with pytest.raises(ConfigError) as caught:
        parse(impossible, "hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e-5, "1.0E-5"),
        (1.5e7, "1.5E7"),
        (9999999.0, "9999999.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-2.5e-9, "-2.5E-9"),
        (True, "true"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
        (7, "7"),
    ],
)
def test_values_are_shown_as_java_shows_them(value: object, text: str | None) -> None:
    assert render(value) == text


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(value: float) -> None:
    key = BROKER_KEYS["log.cleaner.io.max.bytes.per.second"]
    text = render(value)
    assert text is not None and parse(key, text) == value


@given(st.integers(min_value=-1, max_value=2**63 - 1))
def test_a_long_survives_its_text(value: int) -> None:
    assert parse(TOPIC_KEYS["retention.ms"], str(value)) == value
