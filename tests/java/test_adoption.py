"""Our broker opens a log directory that Apache Kafka wrote."""

import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import Message, Sending, numbered
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.consumers import ConsumerSetup
from tests.clients.transactional import ConfluentTransactional
from tests.java.conftest import JAVA_TESTS_PEER, QUICK, MakeServer
from tests.java.kafka_server import KafkaServer
from tests.java.stocked import SEGMENTED, TOPICS, partition_directory, read_all, read_and_leave, stock

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(JAVA_TESTS_PEER == "kafka", reason="Kafka does not adopt directories"),
]
ADOPT = {"barnabas.adopt.log.dirs": "true"}
PROTOCOLS = ("classic", "consumer")


def _log_directory(below: Path) -> Path:
    """The log directory of a broker: the one with meta.properties."""
    files = sorted(below.rglob("meta.properties"))
    assert files, f"no meta.properties below {below}"
    return files[0].parent


def _adopted(make_server: MakeServer, sources: Iterable[Path]) -> BrokerProcess:
    """A broker of ours: started once, then stopped, given Kafka's partitions and started again."""
    ours = make_server(ADOPT, kind=BrokerProcess)
    assert isinstance(ours, BrokerProcess)
    ours.stop()
    for source in sources:
        shutil.copytree(source, _log_directory(ours.data_dir) / source.name)
    ours.start()
    return ours


def _stocked_partitions(kafka: KafkaServer) -> list[Path]:
    return [partition_directory(kafka.log_dir, topic) for topic in TOPICS]


def _stocked_kafka(make_server: MakeServer) -> tuple[KafkaServer, dict[str, list[Message]]]:
    kafka = make_server(kind=KafkaServer)
    assert isinstance(kafka, KafkaServer)
    stock(kafka.bootstrap)
    return kafka, read_all(kafka.bootstrap)


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_records_of_kafka_are_read(make_server: MakeServer, with_signal: int) -> None:
    """After a clean stop and after a kill, which leaves Kafka's indexes at their full length, not flushed."""
    kafka, written = _stocked_kafka(make_server)
    kafka.stop(with_signal)
    ours = _adopted(make_server, _stocked_partitions(kafka))
    assert read_all(ours.bootstrap) == written
    client = ConfluentClient(ours.bootstrap)
    sample = written[SEGMENTED][3210]
    assert client.read(SEGMENTED, 1, offset=3210) == [sample]
    assert sample.timestamp_ms is not None
    assert client.offset_for_time(SEGMENTED, sample.timestamp_ms) == 3210


def test_writing_goes_on_where_kafka_stopped(make_server: MakeServer) -> None:
    kafka, written = _stocked_kafka(make_server)
    kafka.stop()
    ours = _adopted(make_server, _stocked_partitions(kafka))
    client = ConfluentClient(ours.bootstrap)
    end = len(written[SEGMENTED])
    assert client.produce(SEGMENTED, numbered(3), Sending(idempotent=True)) == [end, end + 1, end + 2]
    ours.restart()
    deadline = time.monotonic() + 20
    while client.offset_range(SEGMENTED) != (0, end + 3):
        assert time.monotonic() < deadline, "the records written after the adoption are gone"


def _is_topic(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith("__cluster_metadata")


def test_groups_and_transactions_of_kafka_go_on(make_server: MakeServer) -> None:
    """Groups of both kinds keep their offsets; the next producer of the id ends an open transaction."""
    kafka = make_server(QUICK, kind=KafkaServer)
    assert isinstance(kafka, KafkaServer)
    ConfluentAdmin(kafka.bootstrap).create_topic("read")
    ConfluentClient(kafka.bootstrap).produce("read", numbered(20))
    groups = [ConsumerSetup(kind, ("read",), protocol=kind, isolation="read_committed") for kind in PROTOCOLS]
    for setup in groups:
        read_and_leave(kafka.bootstrap, setup, 20)
    producer = ConfluentTransactional(kafka.bootstrap, "writer")
    producer.begin()
    producer.send("read", b"committed")
    producer.commit()
    producer.begin()
    producer.send("read", b"left open")
    kafka.stop()
    ours = _adopted(make_server, [path for path in kafka.log_dir.iterdir() if _is_topic(path)])
    ConfluentTransactional(ours.bootstrap, "writer")
    ConfluentClient(ours.bootstrap).produce("read", numbered(1, "after"))
    for setup in groups:
        assert read_and_leave(ours.bootstrap, setup, 2) == [b"committed", b"after 0"]
