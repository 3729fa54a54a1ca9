"""Dead letters that go back to the clusters they came from, each once."""

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.spark.pipeline.definition import Cluster, Pipeline, Source, TopicSink
from barnabas.spark.pipeline.replaying import replay
from barnabas.testing import Broker


@pytest.fixture
def brokers() -> Iterator[tuple[Broker, Broker]]:
    with Broker({"num.partitions": "1"}) as own, Broker({"num.partitions": "1"}) as west:
        yield own, west


def values(broker: Broker, topic: str) -> list[bytes | None]:
    settings = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_committed"}
    with barnabas.Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        partition = barnabas.TopicPartition(topic, 0)
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        found: list[bytes | None] = []
        while consumer.position(partition) < end:
            found += [record.value for record in consumer.poll(5.0)]
        return found


def test_letters_go_back_to_their_clusters(brokers: tuple[Broker, Broker]) -> None:
    own, west = brokers
    pipeline = Pipeline(
        name="two",
        bootstrap=own.bootstrap,
        checkpoint="./state",
        sources={"far": Source(topics=("orders",), cluster="west"), "near": Source(topics=("visits",))},
        sinks=(TopicSink("near", "copies"),),
        dead_letters="dead",
        clusters={"west": Cluster(west.bootstrap)},
    )
    with barnabas.Producer({"bootstrap.servers": own.bootstrap}) as producer:
        for topic, step, value in (
            ("orders", "far", b"1"),
            ("visits", "near", b"2"),
            # A rule of a step: the topic tells which source it was.
            ("orders", "joined", b"3"),
        ):
            headers = [("barnabas.topic", topic.encode()), ("barnabas.step", step.encode())]
            producer.send("dead", value, headers=headers)
    assert replay(pipeline, dry_run=True).sent == {"orders": 2, "visits": 1}
    assert replay(pipeline).sent == {"orders": 2, "visits": 1}
    assert replay(pipeline).sent == {}
    assert values(west, "orders") == [b"1", b"3"]
    assert values(own, "visits") == [b"2"]
