"""`barnabas replica-verification` on three brokers, also with a replica whose bytes were changed."""

from pathlib import Path

import pytest
from tests.cluster.conftest import MakeTopic
from tests.cluster.test_moving import run

import barnabas
from barnabas.cli.main import main
from barnabas.testing import Cluster


def fill(cluster: Cluster, topic: str, count: int) -> None:
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, value=b"value %d" % number, partition=0).result(30)


def test_equal_replicas_and_a_changed_one(
    cluster: Cluster, make_topic: MakeTopic, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic(1)
    fill(cluster, topic, 5)
    compared = run(cluster, f"replica-verification --topics-include {topic} --time -2 --once")
    lines = [line.partition(": ")[2] for line in compared.splitlines()]
    assert lines == [
        "verification process is started",
        f"max lag is 0 for partition {topic}-0 at offset 5 among 1 partitions",
    ]
    leader = cluster.leader_of((topic, 0))
    follower = next(id_ for id_ in cluster.brokers if id_ != leader)
    cluster.stop(follower)
    (segment,) = (cluster.brokers[follower].data_dir / f"{topic}-0").glob("*.log")
    change_checksum(segment)
    cluster.restart(follower)
    cluster.wait_until_in_sync(topic)
    arguments = ["--topics-include", topic, "--time", "-2", "--once", "--broker-list", cluster.bootstrap]
    assert main(["replica-verification", *arguments]) == 1
    assert f"partition {topic}-0 has unmatched checksum at offset 0" in capsys.readouterr().out


def change_checksum(segment: Path) -> None:
    """Change the stored checksum of the first batch."""
    data = bytearray(segment.read_bytes())
    data[17] ^= 0xFF
    segment.write_bytes(data)
