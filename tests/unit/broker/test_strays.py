"""Partitions on disk that the metadata does not know."""

import shutil
from pathlib import Path

from tests.support.raw_client import RawClient

from barnabas.testing import Broker
from barnabas.wire.messages.metadata import MetadataRequest

ADOPT = {"barnabas.adopt.log.dirs": "true"}


def topics_of(broker: Broker) -> dict[str | None, int]:
    with RawClient("127.0.0.1", broker.port) as client:
        response = client.call(3, 12, MetadataRequest(topics=None))
        return {topic.name: len(topic.partitions) for topic in response.topics}


def broker_with_a_stray(tmp_path: Path) -> Path:
    """A data directory with a topic of another broker in it."""
    from barnabas.wire.messages.metadata import MetadataRequestTopic

    first, second = tmp_path / "first", tmp_path / "second"
    with (
        Broker({"num.partitions": "2"}, data_dir=first) as broker,
        RawClient("127.0.0.1", broker.port) as client,
    ):
        client.call(
            3,
            12,
            MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True),
        )
    with Broker(data_dir=second):
        pass
    for index in range(2):
        shutil.copytree(first / f"orders-{index}", second / f"orders-{index}")
    return second


def test_a_stray_is_set_aside_and_kept(tmp_path: Path) -> None:
    data_dir = broker_with_a_stray(tmp_path)
    for _ in range(2):
        with Broker(data_dir=data_dir) as broker:
            assert topics_of(broker) == {}
    kept = sorted(path.name for path in data_dir.glob("orders-*"))
    assert [name.partition(".")[0] for name in kept] == ["orders-0", "orders-1"]
    assert all(name.endswith("-stray") for name in kept)
    assert all(list((data_dir / name).glob("*.log")) for name in kept)


def test_a_stray_is_adopted_if_configured_and_stays_a_topic(tmp_path: Path) -> None:
    data_dir = broker_with_a_stray(tmp_path)
    with Broker(ADOPT, data_dir=data_dir) as broker:
        assert topics_of(broker) == {"orders": 2}
    with Broker(data_dir=data_dir) as broker:
        assert topics_of(broker) == {"orders": 2}
