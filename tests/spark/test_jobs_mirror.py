"""A mirror copies each record once, wherever it is stopped, and groups go on at the right record."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.topics import Topics

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin.types import ConfigResource, ConfigResourceType
from barnabas.ids import TopicPartition
from barnabas.spark.jobs.clients import JobError
from barnabas.spark.jobs.mirror import Mirror, mirror_once
from barnabas.spark.jobs.offset_map import History, Meeting, added, read_meetings
from barnabas.spark.jobs.translation import met_before
from barnabas.spark.settings import Topics as Wanted
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME = 1_700_000_000_000


@pytest.fixture(scope="module")
def target() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}, subprocess=True) as target:
        yield target


@pytest.fixture(scope="module")
def copies(target: Broker) -> Iterator[Topics]:
    with Topics(target.bootstrap) as copies:
        yield copies


def committed(broker: Broker, topic: str, partition: int = 0, start: int = 0) -> list[Any]:
    """The records that a consumer with read_committed sees from an offset on."""
    where = TopicPartition(topic, partition)
    settings = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_committed"}
    with barnabas.Consumer(settings | {"enable.auto.commit": False}) as consumer:
        consumer.assign([where])
        consumer.seek(where, start)
        end = consumer.end_offsets([where])[where]
        records: list[Any] = []
        while consumer.position(where) < end:
            records += consumer.poll(5.0)
        return records


def test_records_topics_and_groups(
    spark: "SparkSession", broker: Broker, target: Broker, topics: Topics, copies: Topics, tmp_path: Path
) -> None:
    topic = topics.make(f"mirrored-{tmp_path.name}", 2, retention_ms="-1", max_message_bytes="500000")
    for number in range(5):
        topics.put(topic, [b"%d" % number], key=b"k", timestamp=TIME + number, headers=[("h", b"v")])
    topics.put(topic, [None], partition=1, key=b"gone", timestamp=TIME)
    topics.put_in_transaction(topic, [b"never"], commits=False)
    topics.put_in_transaction(topic, [b"5", b"6"], commits=True)
    mirror = Mirror(
        {"bootstrap.servers": broker.bootstrap},
        {"bootstrap.servers": target.bootstrap},
        Wanted(pattern=f"{topic}.*"),
        str(tmp_path / "checkpoint"),
        alias=topic,
        rename="eu.{topic}",
        groups=("reader", "done"),
    )
    first = TopicPartition(topic, 0)
    # In partition 0 the offsets 0 to 4, 7 and 8 are committed records; the values 3, 4, 5 and 6 are not read
    # yet.
    topics.admin.alter_consumer_group_offsets("reader", {first: 3})
    topics.admin.alter_consumer_group_offsets("done", {first: 10})
    done = mirror_once(spark, mirror)
    copy = f"eu.{topic}"
    assert (done.rows, done.made) == (8, [copy])
    records = committed(target, copy)
    assert [(record.key, record.value, record.timestamp) for record in records[:5]] == [
        (b"k", b"%d" % number, TIME + number) for number in range(5)
    ]
    assert [record.value for record in records[5:]] == [b"5", b"6"]
    assert records[0].headers == (("h", b"v"),)
    (tombstone,) = committed(target, copy, partition=1)
    assert (tombstone.key, tombstone.value, tombstone.timestamp) == (b"gone", None, TIME)
    resource = ConfigResource(ConfigResourceType.TOPIC, copy)
    assert copies.admin.describe_configs([resource])[resource]["max.message.bytes"].value == "500000"

    assert read_meetings(mirror.target, topic)[first][-1][2:] == (10, 8, 0), "seven records and a marker"
    assert copies.committed("reader") == {TopicPartition(copy, 0): 3}
    assert copies.committed("done") == {TopicPartition(copy, 0): 8}

    # If the query stops after the transaction and before Spark's commit, the batch comes again and writes
    # nothing.
    newest = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    topics.put(topic, [b"7"])
    topics.admin.alter_consumer_group_offsets("reader", {first: 7})
    again = mirror_once(spark, mirror)
    assert [record.value for record in committed(target, copy)] == [b"%d" % number for number in range(8)]
    assert again.made == []
    (moved,) = [each for each in again.groups if each.group == "reader"]
    assert [each.value for each in committed(target, copy, start=moved.target or 0)] == [b"5", b"6", b"7"]


def test_a_topic_is_not_copied_into_itself(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["mirror", "--source", broker.bootstrap, "--target", broker.bootstrap, "--topic", topic]
    assert main([*arguments, "--checkpoint", str(tmp_path), "--once"]) == 1
    assert f"{topic} would be copied into itself" in capsys.readouterr().err


def test_what_is_known_of_compacted_topics() -> None:
    """Records cannot be counted there: a group goes back to the last corresponding offset."""
    partition, copy = TopicPartition("table", 0), TopicPartition("copy", 0)
    history: History = {}
    assert added(history, [Meeting(partition, copy, 10, 11)]) == [Meeting(partition, copy, 10, 11, 0)]
    assert added(history, [Meeting(partition, copy, 10, 11)]) == []
    assert added(history, [Meeting(partition, copy, 20, 25)]) == [Meeting(partition, copy, 20, 25, 1)]
    places = [met_before(history[partition], source, 3) for source in (9, 10, 19, 20, 99)]
    assert places == [3, 11, 11, 25, 25]


def test_mistakes(spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    with pytest.raises(JobError, match="no topic that matches 'nobody'"):
        mirror_once(spark, Mirror(client, client, Wanted(pattern="nobody"), str(tmp_path)))
    with pytest.raises(JobError, match=r"must contain \{topic\}"):
        mirror_once(spark, Mirror(client, client, Wanted(pattern=".*"), str(tmp_path), rename="x"))
