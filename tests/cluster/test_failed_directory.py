"""A broker loses one of its log directories: its replicas there are led by others, the rest goes on."""

from pathlib import Path

from barnabas import Producer
from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster

TOPIC, PARTITIONS = "orders", 6


def test_replicas_in_a_lost_directory_leave_the_isr_and_leadership(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    log_dirs = {"log.dirs": ",".join(map(str, directories))}
    quick = {"replica.high.watermark.checkpoint.interval.ms": "200", "auto.leader.rebalance.enable": "false"}
    with Cluster(brokers=3, overrides=quick, broker_overrides={1: log_dirs}) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        cluster.wait_until_in_sync(TOPIC)
        lost = {int(path.name.rpartition("-")[2]) for path in directories[1].glob(f"{TOPIC}-*")}
        assert 0 < len(lost) < PARTITIONS
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        directories[1].rename(tmp_path / "taken away")

        def have_left() -> bool:
            # Moves the high watermarks, so that the broker writes to its directories.
            for index in range(PARTITIONS):
                producer.send(TOPIC, b"value", partition=index)
            producer.flush()
            with cluster.admin() as admin:
                described = admin.describe_topics([TOPIC])[TOPIC].partitions
            in_sync = {
                part.partition for part in described if 1 in {each.id for each in part.in_sync_replicas}
            }
            led = {part.partition for part in described if part.leader and part.leader.id == 1}
            return in_sync == set(range(PARTITIONS)) - lost and not led & lost

        cluster.wait_until(have_left, "the replicas of the lost directory have left the ISR")
        producer.close()
