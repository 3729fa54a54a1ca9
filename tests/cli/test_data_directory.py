"""A copy of the data directory of a stopped broker is a backup, as docs/operations.md says."""

import shutil
from pathlib import Path

from tests.clients.broker_process import running_broker

import barnabas


def test_a_broker_starts_with_a_copy_of_its_data(tmp_path: Path) -> None:
    quick = {"group.initial.rebalance.delay.ms": "0"}
    with running_broker(tmp_path / "first", quick) as broker:
        with barnabas.Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(5):
                producer.send("orders", b"%d" % number)
        with barnabas.Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_consumer_group_offsets("billing", {barnabas.TopicPartition("orders", 0): 3})
            cluster_id = admin.describe_cluster().cluster_id
    shutil.copytree(tmp_path / "first" / "data", tmp_path / "second" / "data")
    with running_broker(tmp_path / "second", quick) as copy:
        with barnabas.Admin(bootstrap_servers=copy.bootstrap) as admin:
            assert admin.describe_cluster().cluster_id == cluster_id
        with barnabas.Consumer(bootstrap_servers=copy.bootstrap, group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            read: list[bytes | None] = []
            while len(read) < 2:
                read += [record.value for record in consumer.poll(1.0)]
        assert read == [b"3", b"4"]
