"""The figures at /metrics follow what clients do and what happens to the broker."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.raw_calls import batch_of, fetch_partition, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import RawTransactional
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.broker.broker import Broker
from barnabas.broker.dispatch import Traffic
from barnabas.broker.metrics import groups, partitions
from barnabas.client.admin import Admin
from barnabas.errors import ErrorCode
from barnabas.metadata.difference import Difference
from barnabas.metadata.parts import PartitionImage
from barnabas.security.quotas import CLIENT_ID
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


class Figures:
    """One scrape; `figures["name", ("label", "value")]` is the sample with exactly these labels."""

    def __init__(self, port: int) -> None:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            text = response.read().decode()
        self._samples = {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __getitem__(self, key: str | tuple[str | tuple[str, str], ...]) -> float:
        name, *labels = (key,) if isinstance(key, str) else key
        return self._samples[name, *sorted(labels)]  # type: ignore[type-var, index]

    def __contains__(self, key: str | tuple[str | tuple[str, str], ...]) -> bool:
        try:
            self[key]
        except KeyError:
            return False
        return True

    def of(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """All samples of a name by their labels."""
        return {key[1:]: value for key, value in self._samples.items() if key[0] == name}  # type: ignore[misc]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[VisibleBroker]:
    overrides = {"barnabas.metrics.port": "0", "group.initial.rebalance.delay.ms": "0"}
    with visible_broker(tmp_path, overrides) as broker:
        yield broker


@pytest.fixture
def client(running: VisibleBroker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", running.port) as client:
        yield client


def figures(running: VisibleBroker) -> Figures:
    assert running.broker.metrics_port is not None
    return Figures(running.broker.metrics_port)


def test_requests_and_bytes_per_topic(running: VisibleBroker, client: RawClient) -> None:
    topic, other = new_topic(client, name="orders", partitions=2), new_topic(client, name="quiet")
    first, second = batch_of(b"one", b"two"), batch_of(b"three")
    produce_batch(client, topic, first, version=9)
    produce_batch(client, topic, second, version=9, partition=1)
    # Not the short way: a batch with a wrong CRC is refused by the ordinary one.
    assert produce_batch(client, topic, first[:-1] + b"\1").error_code == ErrorCode.CORRUPT_MESSAGE
    assert produce_batch(client, topic, first, partition=7).error_code
    fetched = fetch_partition(client, topic)
    assert fetched.records is not None
    assert fetch_partition(client, topic, 99).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch_partition(client, topic, partition=7).error_code
    assert fetch_partition(client, other).error_code == ErrorCode.NONE
    values = figures(running)
    prefix = "kafka_server_brokertopicmetrics_"
    label = ("topic", "orders")
    assert values[prefix + "bytesin_total", label] == len(first) + len(second)
    assert values[prefix + "messagesin_total", label] == 3
    assert values[prefix + "bytesout_total", label] == len(first)
    assert values[prefix + "totalproducerequests_total", label] == 3
    assert values[prefix + "failedproducerequests_total", label] == 1
    assert values[prefix + "totalfetchrequests_total", label] == 2
    assert values[prefix + "failedfetchrequests_total", label] == 1
    for name in ("produce", "fetch"):
        assert values[f"{prefix}total{name}requests_total", ("topic", "")] == 1
        assert values[f"{prefix}failed{name}requests_total", ("topic", "")] == 1
    assert values[prefix + "totalfetchrequests_total", ("topic", "quiet")] == 1


def test_latencies_are_histograms(running: VisibleBroker, client: RawClient) -> None:
    topic = new_topic(client)
    for _ in range(5):
        produce_batch(client, topic, batch_of(b"x"))
    values = figures(running)
    name, label = "kafka_network_requestmetrics_totaltime_seconds", ("request", "Produce")
    assert values[name + "_count", label] == 5
    assert values["kafka_network_requestmetrics_requests_total", label] == 5
    assert values[name + "_sum", label] > 0
    buckets = {
        dict(labels)["le"]: value
        for labels, value in values.of(name + "_bucket").items()
        if dict(labels)["request"] == "Produce"
    }
    counts = [buckets[bound] for bound in sorted(buckets, key=float)]
    assert len(counts) == 25
    assert counts == sorted(counts)
    assert counts[-1] == 5
    assert (name + "_count", ("request", "DeleteTopics")) not in values


def test_requests_that_are_answered_together_are_counted_one_by_one() -> None:
    traffic = Traffic()
    traffic.record(3, 1000)
    traffic.record(1, 1 << 40)
    assert (traffic.requests, traffic.nanoseconds) == (4, 3000 + (1 << 40))
    assert {bits: count for bits, count in enumerate(traffic.by_bit_length) if count} == {10: 3, 41: 1}


def test_groups_and_their_lag(running: VisibleBroker, client: RawClient) -> None:
    topic = new_topic(client, name="orders")
    produce_batch(client, topic, batch_of(*[b"x"] * 10))
    workers, outside = RawGroup(client, "workers"), RawGroup(client, "outside")
    workers.find()
    joined = workers.joined()
    workers.sync(joined, {joined.member_id: b"all"})
    member = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
    assert workers.commit(topic, 4, **member) == ErrorCode.NONE
    assert outside.commit(topic, 9) == ErrorCode.NONE
    values = figures(running)
    place = (("topic", "orders"), ("partition", "0"))
    assert values["kafka_consumergroup_lag", ("consumergroup", "workers"), *place] == 6
    assert values["kafka_consumergroup_current_offset", ("consumergroup", "workers"), *place] == 4
    assert values["kafka_consumergroup_lag_sum", ("consumergroup", "outside"), ("topic", "orders")] == 1
    states = values.of("kafka_server_group_coordinator_metrics_group_count")
    assert states == {
        (("protocol", "classic"), ("state", "Stable")): 1,
        (("protocol", "classic"), ("state", "Empty")): 1,
    }
    assert values["kafka_coordinator_group_groupmetadatamanager_numgroups"] == 2
    assert values["kafka_coordinator_group_groupmetadatamanager_numgroupsstable"] == 1
    assert values["kafka_coordinator_group_groupmetadatamanager_numoffsets"] == 2


def test_lag_per_partition_has_a_limit(
    running: VisibleBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "PARTITION_SERIES_MAX", 1)
    topic, other = new_topic(client), new_topic(client)
    group = RawGroup(client, "many")
    group.find()
    for each in (topic, other):
        produce_batch(client, each, batch_of(b"x"))
        assert group.commit(each, 0) == ErrorCode.NONE
    samples = figures(running)
    assert list(samples.of("kafka_consumergroup_lag").values()) == [1]
    assert list(samples.of("kafka_consumergroup_lag_sum").values()) == [1, 1]


def test_open_transactions(running: VisibleBroker, client: RawClient) -> None:
    topic = new_topic(client)
    producer = RawTransactional(client, "mover")
    producer.init()
    assert figures(running)["barnabas_open_transactions", ("state", "Ongoing")] == 0
    assert producer.produce(topic, b"x") == ErrorCode.NONE
    values = figures(running)
    assert values["barnabas_open_transactions", ("state", "Ongoing")] == 1
    assert values["barnabas_transactional_ids"] == 1
    assert values["barnabas_oldest_transaction_seconds"] >= 0


def test_a_follower_that_is_behind(running: VisibleBroker, client: RawClient) -> None:
    topic = new_topic(client, name="followed")

    def follow(broker: Broker) -> None:
        partition = broker.replicas.leader("followed", 0)
        epoch = partition.partition_epoch + 1
        partition.follow(PartitionImage((1, 2), (1,), 1, partition.leader_epoch, epoch))

    running.look(follow)
    produce_batch(client, topic, batch_of(b"a", b"b"), acks=1)
    values = figures(running)
    lag = "barnabas_follower_lag", ("topic", "followed"), ("partition", "0"), ("follower", "2")
    assert values[lag] == 2
    assert values["kafka_server_replicamanager_underreplicatedpartitions"] == 1
    assert values["kafka_server_replicamanager_isrshrinks_total"] == 0
    assert values["kafka_server_replicamanager_isrexpands_total"] == 0
    assert values["kafka_server_replicamanager_failedisrupdates_total"] == 0


def test_partitions_in_trouble(running: VisibleBroker, client: RawClient) -> None:
    new_topic(client, name="strict", min_insync_replicas="2")
    new_topic(client, name="broken", partitions=2)
    values = figures(running)
    assert values["kafka_server_replicamanager_partitioncount"] == 3
    assert values["kafka_server_replicamanager_leadercount"] == 3
    # A topic with one replica needs no more in sync.
    assert values["kafka_server_replicamanager_underminisrpartitioncount"] == 0
    assert values["kafka_server_replicamanager_atminisrpartitioncount"] == 3
    assert values["kafka_server_replicamanager_underreplicatedpartitions"] == 0
    assert values["kafka_controller_kafkacontroller_globaltopiccount"] == 2
    assert values["kafka_controller_kafkacontroller_globalpartitioncount"] == 3
    assert values["kafka_controller_kafkacontroller_offlinepartitionscount"] == 0

    def take_offline(broker: Broker) -> None:
        broker.replicas.leader("broken", 1).log.offline = True

    running.look(take_offline)
    values = figures(running)
    assert values["kafka_controller_kafkacontroller_offlinepartitionscount"] == 1
    assert values["kafka_server_replicamanager_offlinereplicacount"] == 1


def test_a_failed_follower_of_the_metadata_is_counted(running: VisibleBroker) -> None:
    assert figures(running)["barnabas_metadata_followers_behind"] == 0

    def fail(*_: object) -> None:
        raise RuntimeError("not now")

    def add(broker: Broker) -> None:
        broker.followers.add("a part", fail)
        broker.followers.follow(broker.image, broker.image, Difference())

    running.look(add)
    values = figures(running)
    assert values["barnabas_metadata_followers_behind"] == 1
    assert values["kafka_server_broker_metadata_metrics_metadata_apply_error_count"] == 1


def test_the_process_and_its_loop(running: VisibleBroker) -> None:
    samples = figures(running)
    own = os.getpid()
    resident_kilobytes = next(
        int(line.split()[1])
        for line in Path(f"/proc/{own}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    assert samples["process_resident_memory_bytes"] == pytest.approx(resident_kilobytes * 1024, rel=0.2)
    assert samples["process_virtual_memory_bytes"] > samples["process_resident_memory_bytes"]
    assert 3 < samples["process_open_fds"] < samples["process_max_fds"]
    assert samples["process_cpu_seconds_total"] > 0
    assert samples["process_start_time_seconds"] < time.time()
    assert samples["process_start_time_seconds"] > time.time() - 30 * 24 * 3600
    share = samples["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"]
    assert 0 < share <= 1
    assert samples["barnabas_loop_idle_seconds_total"] > 0
    assert list(samples.of("barnabas_build_info").values()) == [1]


def test_a_topic_that_is_deleted_during_a_scrape_does_not_break_it(
    running: VisibleBroker, client: RawClient
) -> None:
    topic = new_topic(client, partitions=3)
    produce_batch(client, topic, batch_of(b"x"))
    families = running.look(lambda broker: [family for family in partitions.collect(broker) if family])
    client.call(20, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=1000))
    samples = running.look(lambda _: {family.name: list(family.samples) for family in families})
    assert len(samples["kafka_log_log_size"]) == 3


def test_a_deleted_topic_is_gone(running: VisibleBroker, client: RawClient) -> None:
    topic = new_topic(client)
    produce_batch(client, topic, batch_of(b"x"))
    label = ("topic", topic.name)
    assert ("kafka_server_brokertopicmetrics_bytesin_total", label) in figures(running)
    client.call(20, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=1000))
    assert ("kafka_server_brokertopicmetrics_bytesin_total", label) not in figures(running)


def test_quotas(running: VisibleBroker) -> None:
    with Admin(bootstrap_servers=f"127.0.0.1:{running.port}") as admin:
        admin.alter_client_quotas({((CLIENT_ID, "writer"),): {"producer_byte_rate": 1000}})
        admin.alter_client_quotas({((CLIENT_ID, "writer"),): {"controller_mutation_rate": 0.5}})
    with RawClient("127.0.0.1", running.port, client_id="writer") as client:
        topic = new_topic(client, partitions=3)
        produce_batch(client, topic, batch_of(bytes(20_000)))
    writer = (("client_id", "writer"), ("user", ""))
    quota = (*writer, ("quota", "producer_byte_rate"))
    scraped = figures(running)
    assert 1500 < scraped["kafka_server_produce_byte_rate", *writer] < 3000
    assert scraped["barnabas_quota_bound", *quota] == 1000
    assert scraped["barnabas_quota_throttled_requests_total", *quota] == 1
    assert 5 < scraped["barnabas_quota_throttled_seconds_total", *quota] < 15
    assert 0 < scraped["kafka_server_controllermutation_mutation_rate", *writer] < 0.5
    # 5.5 at first, less 3.
    assert 2.5 <= scraped["kafka_server_controllermutation_tokens", *writer] <= 5.5
    assert scraped["barnabas_connections_waiting"] == 0
