"""The files of the replicas: the same bytes everywhere, also after crashes and damage."""

import shutil
from pathlib import Path

from tests.cluster.conftest import MakeTopic

from barnabas import Producer
from barnabas.testing import Cluster

# The position of a byte in the records of a batch, after its header.
IN_THE_RECORDS = 70


def write(cluster: Cluster, topic: str, count: int, acks: str = "all") -> None:
    """One batch for each record."""
    with Producer({"bootstrap.servers": cluster.bootstrap, "acks": acks}) as producer:
        for number in range(count):
            producer.send(topic, b"value %d" % number)
            producer.flush()


def partition_of(cluster: Cluster, broker_id: int, topic: str) -> Path:
    return cluster.brokers[broker_id].data_dir / f"{topic}-0"


def files_of(cluster: Cluster, broker_id: int, topic: str) -> dict[str, bytes]:
    directory = partition_of(cluster, broker_id, topic)
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def wait_until_equal(cluster: Cluster, topic: str) -> None:
    def are_equal() -> bool:
        first, *others = [files_of(cluster, broker_id, topic) for broker_id in cluster.brokers]
        return all(files == first for files in others)

    cluster.wait_until(are_equal, f"all replicas of {topic} have the same bytes")


def wait_until_reported(cluster: Cluster, broker_id: int) -> None:
    """The broker prints it after the bytes are replaced."""
    text = "are replaced with the copy of another replica"
    cluster.wait_until(
        lambda: text in cluster.brokers[broker_id].output(), f"broker {broker_id} prints: {text}"
    )


def flip_bit(cluster: Cluster, broker_id: int, topic: str) -> None:
    """Damage the records of a batch in the middle of the first segment."""
    path = min(partition_of(cluster, broker_id, topic).glob("*.log"))
    data = path.read_bytes()
    position = 0
    while position < len(data) // 2:
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    with path.open("r+b") as file:
        file.seek(position + IN_THE_RECORDS)
        file.write(bytes([data[position + IN_THE_RECORDS] ^ 1]))


def others(cluster: Cluster, broker_id: int) -> list[int]:
    return [each for each in cluster.brokers if each != broker_id]


def test_replicas_have_the_same_bytes_after_their_brokers_were_killed(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"min.insync.replicas": "1"})
    leader = cluster.leader_of((topic, 0))
    follower = others(cluster, leader)[0]
    cluster.kill(follower)
    write(cluster, topic, 20, acks="1")
    cluster.kill(leader)
    write(cluster, topic, 20)
    cluster.restart(leader)
    cluster.restart(follower)
    cluster.wait_until_in_sync(topic)
    write(cluster, topic, 1)
    wait_until_equal(cluster, topic)


def test_damage_on_a_follower_is_repaired_from_its_leader(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(cluster, topic, 50)
    follower = others(cluster, cluster.leader_of((topic, 0)))[0]
    cluster.kill(follower)
    flip_bit(cluster, follower, topic)
    cluster.restart(follower)
    wait_until_equal(cluster, topic)
    wait_until_reported(cluster, follower)


def test_damage_on_a_leader_is_repaired_from_a_follower(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(cluster, topic, 50)
    leader = cluster.leader_of((topic, 0))
    follower = others(cluster, leader)[0]
    cluster.kill(follower)
    # Now nobody reads the batch until the follower needs all records again.
    flip_bit(cluster, leader, topic)
    shutil.rmtree(partition_of(cluster, follower, topic))
    cluster.restart(follower)
    cluster.wait_until_in_sync(topic)
    wait_until_equal(cluster, topic)
    wait_until_reported(cluster, leader)
