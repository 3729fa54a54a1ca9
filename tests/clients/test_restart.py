"""A broker that stops or dies in the middle of producing loses nothing it acknowledged."""

import signal
import time
from collections.abc import Iterator

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import Message, Sending, contents, numbered
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.conftest import CLIENTS

COUNT = 400
FAULTS_AT = (100, 250)


def _interrupted(broker: BrokerProcess, with_signal: int) -> Iterator[Message]:
    """Messages, and between two of them the broker goes down and comes back."""
    for number, message in enumerate(numbered(COUNT)):
        if number in FAULTS_AT:
            broker.restart(with_signal)
        time.sleep(0.001)  # so that batches are on their way when the fault comes
        yield message


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_restart_while_an_idempotent_producer_sends(
    own_broker: BrokerProcess, topic_name: str, name: str, with_signal: int
) -> None:
    ConfluentAdmin(own_broker.bootstrap).create_topic(topic_name)
    client = CLIENTS[name](own_broker.bootstrap)
    sending = Sending(idempotent=True, linger_ms=1)
    offsets = client.produce(topic_name, _interrupted(own_broker, with_signal), sending)
    assert offsets == list(range(COUNT))
    reader = ConfluentClient(own_broker.bootstrap)
    assert contents(reader.read(topic_name, COUNT)) == contents(numbered(COUNT))
    assert reader.offset_range(topic_name) == (0, COUNT)


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_topics_and_configs_survive(own_broker: BrokerProcess, topic_name: str, with_signal: int) -> None:
    admin = ConfluentAdmin(own_broker.bootstrap)
    admin.create_topic(topic_name, partitions=3, configs={"retention.ms": "4242"})
    cluster_id = admin.cluster().cluster_id
    ConfluentClient(own_broker.bootstrap).produce(topic_name, numbered(10))
    own_broker.restart(with_signal)
    again = ConfluentAdmin(own_broker.bootstrap)
    assert again.partition_count(topic_name) == 3
    assert again.topic_config(topic_name)["retention.ms"] == "4242"
    assert again.cluster().cluster_id == cluster_id
    assert ConfluentClient(own_broker.bootstrap).offset_range(topic_name) == (0, 10)


def test_sigterm_is_a_clean_end(own_broker: BrokerProcess) -> None:
    assert own_broker.stop(signal.SIGTERM) == 0
