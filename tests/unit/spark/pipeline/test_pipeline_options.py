"""The options that a pipeline passes to the data source."""

import pytest

from barnabas.spark.pipeline.definition import Pipeline, Source, TopicSink
from barnabas.spark.pipeline.options import dead_letter_options, sink_options, source_options
from barnabas.spark.settings import read_settings
from barnabas.spark.sink.settings import write_settings

SOURCE = Source(topics=("orders", "returns"), decode="json", schema="id long", bad_records="quarantine")
PIPELINE = Pipeline(
    name="shop",
    bootstrap="broker:9092",
    checkpoint="./state",
    sources={"orders": SOURCE},
    sinks=(TopicSink("orders", "copies"),),
    dead_letters="letters",
    client={"client.id": "shop"},
)


def test_a_source() -> None:
    settings = read_settings(source_options(PIPELINE, SOURCE, "shop-copies"), is_stream=True)
    assert settings.topics.names == ("orders", "returns")
    assert settings.client == {"bootstrap.servers": "broker:9092", "client.id": "shop"}
    assert (settings.decoding.format, settings.decoding.bad_records) == ("json", "null")
    assert settings["maxBytesPerTrigger"] == 256 << 20
    assert settings.group == "shop-copies"


@pytest.mark.parametrize("name", ["maxBytesPerTrigger", "maxbytespertrigger"])
def test_a_limit_of_the_source_replaces_the_default(name: str) -> None:
    options = source_options(PIPELINE, Source(topics=("orders",), options={name: "1000"}), "group")
    assert [text for key, text in options.items() if key.lower() == "maxbytespertrigger"] == ["1000"]


def test_a_sink_to_a_topic() -> None:
    settings = write_settings(sink_options(PIPELINE, TopicSink("orders", "copies")), is_stream=True)
    assert settings.is_exact
    assert settings.transactional_id == "shop-orders-to-copies-writer"
    at_least_once = TopicSink("orders", "copies", delivery="at-least-once")
    assert not write_settings(sink_options(PIPELINE, at_least_once), is_stream=True).is_exact


def test_dead_letters() -> None:
    settings = write_settings(dead_letter_options(PIPELINE, "undecodable-orders"), is_stream=True)
    assert (settings.topic, settings["includeHeaders"]) == ("letters", True)
