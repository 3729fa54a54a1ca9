"""What the options of the data source accept, and the errors for wrong ones."""

from pathlib import Path
from typing import Any

import pytest
from tools.write_spark_option_docs import TARGET, document

from barnabas.ids import TopicPartition
from barnabas.spark.options import SOURCE_OPTIONS, OptionError, read_options
from barnabas.spark.settings import read_settings
from barnabas.spark.starts import EARLIEST, LATEST, Ago, AtEnd, AtGroup, AtOffsets, AtTimes, BeforeEnd

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def settings(is_stream: bool = False, **options: str) -> Any:
    return read_settings(BASE | options, is_stream=is_stream)


def refusal(is_stream: bool = False, **options: str) -> str:
    with pytest.raises(OptionError) as caught:
        settings(is_stream, **options)
    return str(caught.value)


def test_names_are_compared_without_regard_to_case() -> None:
    assert settings(MAXOFFSETSPERTRIGGER="5", failondataloss="FALSE").values["maxOffsetsPerTrigger"] == 5
    assert settings(failondataloss="FALSE")["failOnDataLoss"] is False


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("subscrib", "subscribe"),
        ("startingoffset", "startingOffsets"),
        ("maxRecordPerPartition", "maxRecordsPer"),
    ],
)
def test_an_unknown_option_is_an_error_with_a_guess(name: str, near: str) -> None:
    assert f"did you mean {near}" in refusal(**{name: "1"})


def test_an_unknown_option_like_no_other_points_to_the_list() -> None:
    assert "docs/spark-options.md" in refusal(zzz="1")
    assert "subscribe" in refusal(path="/orders")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("failOnDataLoss", "maybe"),
        ("maxOffsetsPerTrigger", "0"),
        ("minPartitions", "-3"),
        ("batchBytes", "lots"),
        ("batchBytes", "0"),
        ("maxTriggerDelay", "3 fortnights"),
        ("columns", "key,key"),
        ("isolation.level", "read_all"),
        ("startingTimestamp", "-1"),
        ("partition.metadata.cache.ttl.ms", "-2"),
        ("subscribePattern", " "),
    ],
)
def test_a_wrong_value_is_an_error_that_says_what_is_allowed(name: str, text: str) -> None:
    with pytest.raises(OptionError, match=rf"{name} has the value .* must be "):
        read_options({name: text})


@pytest.mark.parametrize(
    ("text", "value"), [("1048576", 1 << 20), ("64k", 65536), ("8M", 8 << 20), ("1gb", 1 << 30), ("12b", 12)]
)
def test_sizes(text: str, value: int) -> None:
    assert read_options({"fetchBytes": text})["fetchBytes"] == value


@pytest.mark.parametrize(
    ("text", "value"), [("250", 250), ("250ms", 250), ("90s", 90_000), ("15m", 900_000), ("1 h", 3_600_000)]
)
def test_times(text: str, value: int) -> None:
    assert read_options({"maxTriggerDelay": text})["maxTriggerDelay"] == value


def test_brokers_and_topics_must_be_given() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        read_settings({"subscribe": "a"}, is_stream=False)
    with pytest.raises(OptionError, match="assign, subscribe and subscribePattern"):
        read_settings({"kafka.bootstrap.servers": "a:1"}, is_stream=False)
    assert "there are subscribe and subscribePattern" in refusal(subscribePattern="a.*")
    assert "not a valid regular expression" in refusal_without_subscribe(subscribePattern="a(")
    assert 'such as {"orders":[0,1]}' in refusal_without_subscribe(assign='{"a":0}')
    assert 'such as {"orders":[0,1]}' in refusal_without_subscribe(assign='{"a":["x"]}')


def refusal_without_subscribe(**options: str) -> str:
    with pytest.raises(OptionError) as caught:
        read_settings({"kafka.bootstrap.servers": "a:1"} | options, is_stream=False)
    return str(caught.value)


def test_settings_of_the_client_are_passed_on_and_checked() -> None:
    parsed = settings(**{"kafka.request.timeout.ms": "1234", "kafka.group.id": "mine"})
    assert parsed.client_config()["request.timeout.ms"] == 1234
    assert parsed.client["client.id"] == "barnabas-spark"
    assert parsed.group == "mine"
    assert "did you mean request.timeout.ms" in refusal(**{"kafka.request.timeout": "1"})


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "interceptor.classes",
    ],
)
def test_settings_that_the_source_decides_are_refused(name: str) -> None:
    assert "cannot be set" in refusal(**{f"kafka.{name}": "x"})
    assert "cannot be used" in refusal(**{name: "x"})


def test_the_isolation_level_may_be_given_either_way() -> None:
    assert not settings().read_committed
    assert settings(**{"isolation.level": "read_committed"}).read_committed
    assert settings(**{"kafka.isolation.level": "read_committed"}).read_committed
    both = {"kafka.isolation.level": "read_committed", "isolation.level": "read_uncommitted"}
    assert "are different: give only one" in refusal(**both)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", AtEnd(EARLIEST)),
        ("LATEST", AtEnd(LATEST)),
        ("now-10m", Ago(600_000)),
        ("now - 2h", Ago(7_200_000)),
        ("-100", BeforeEnd(100)),
        ('{"orders":{"0":23,"1":-2}}', AtOffsets({ORDERS_0: 23, ORDERS_1: EARLIEST})),
    ],
)
def test_places_where_a_stream_begins(text: str, place: object) -> None:
    assert settings(is_stream=True, startingOffsets=text).start == place


def test_defaults_of_the_beginning_and_the_end() -> None:
    assert settings(is_stream=True).start == AtEnd(LATEST)
    assert settings(is_stream=False).start == AtEnd(EARLIEST)
    assert settings(is_stream=False).end == AtEnd(LATEST)


def test_beginning_at_a_group_needs_one() -> None:
    assert "commitOffsets or kafka.group.id" in refusal(startingOffsets="group")
    assert settings(startingOffsets="group", commitOffsets="g").start == AtGroup("g")
    assert settings(startingOffsets="group", **{"kafka.group.id": "h"}).start == AtGroup("h")


def test_times_take_precedence_over_offsets() -> None:
    times = {"startingOffsetsByTimestamp": '{"orders":{"0":17}}', "startingOffsets": "earliest"}
    assert settings(**times).start == AtTimes({TopicPartition("orders", 0): 17}, 0, True)
    lenient = {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "latest"}
    assert settings(**times, **lenient).start == AtTimes(None, 5, False)
    assert settings(endingTimestamp="9").end == AtTimes(None, 9, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffsets": "latest"}, "must not be latest"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "must not be latest"),
        ({"endingOffsets": "earliest"}, "must not be earliest"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "must not be earliest"),
        ({"startingOffsets": "yesterday"}, "must be earliest, latest, now-<duration>"),
        ({"startingOffsets": "now-soon"}, '"now-" must be followed by a duration such as 90s'),
        ({"startingOffsets": '{"orders":{"0":-3}}'}, "below -2"),
        ({"startingOffsets": '{"orders":{"0":"x"}}'}, "must be JSON"),
        ({"startingOffsets": '{"orders":{"0":true}}'}, "must be JSON"),
        ({"startingOffsets": '{"orders":7}'}, "must be JSON"),
        ({"startingOffsets": "{}"}, "must be JSON"),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":-5}}'}, "negative time"),
        ({"badRecords": "drop", "decode": "json"}, "must be fail, null or dlq:<topic>"),
        ({"badRecords": "dlq:", "decode": "json"}, "must be fail, null or dlq:<topic>"),
        ({"badRecords": "null"}, "badRecords needs decode"),
        ({"decode": "avro"}, "give schema.registry.url or avroSchema"),
        ({"decode": "avro", "avroFraming": "none", "schema.registry.url": "http://x"}, "give avroSchema"),
    ],
)
def test_what_a_batch_cannot_have(options: dict[str, str], message: str) -> None:
    assert message in refusal(**options)


def test_what_a_stream_cannot_have() -> None:
    assert "because a stream has no end" in refusal(is_stream=True, endingOffsets="latest")
    both = {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}
    assert "greater than maxOffsetsPerTrigger" in refusal(is_stream=True, **both)


def test_the_document_is_what_the_table_says() -> None:
    assert Path(__file__).parents[3] / "docs" / "spark-options.md" == TARGET
    assert TARGET.read_text() == document()
    for option in SOURCE_OPTIONS:
        assert f"`{option.name}`" in document()


def test_how_much_a_fetch_asks_for() -> None:
    assert settings().fetch_bytes == 8 << 20
    assert settings(**{"kafka.max.partition.fetch.bytes": "5000"}).fetch_bytes == 5000
    assert settings(fetchBytes="1m", **{"kafka.max.partition.fetch.bytes": "5000"}).fetch_bytes == 1 << 20
