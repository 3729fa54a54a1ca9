"""Producers that are stopped in a transaction and continue when another producer has their transactional id,
or never continue."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.broker_process import BrokerProcess, running_broker
from tests.clients.client import wait_until
from tests.clients.reading import everything
from tests.clients.transactional import TRANSACTIONAL
from tests.faults.transaction_stage import (
    QUICK,
    aborted,
    connected,
    ends,
    listed,
    settled_topic,
    state_of,
    wait_for_state,
    wait_until_nothing_hangs,
)
from tests.faults.zombie_process import LIBRARIES, ZombieProcess
from tests.support.raw_client import RawClient

NAME = "taken over"
LONG_MS, MEDIUM_MS, SHORT_MS = "60000", "6000", "3000"
SENT_MIN = 6
ONE_FOR_EACH_PARTITION = 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path, QUICK) as broker:
        yield broker
        assert "Traceback" not in broker.log_text(), broker.log_tail()


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with connected(broker.bootstrap) as client:
        yield client


def sent_at_least(zombie: ZombieProcess, count: int) -> None:
    wait_until(lambda: zombie.sent >= count, f"the producer has sent {count} records", 60)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_zombie_wakes_in_the_transaction_of_its_successor(
    broker: BrokerProcess, client: RawClient, tmp_path: Path, library: str
) -> None:
    """Its transaction was aborted, it gets the error that it is fenced, and what it still sends is not
    written."""
    topic = settled_topic(client, 2)
    arguments = (library, broker.bootstrap, NAME, topic.name, LONG_MS)
    with ZombieProcess(tmp_path, *arguments) as zombie:
        sent_at_least(zombie, SENT_MIN)
        zombie.stop()
        successor = TRANSACTIONAL["confluent-kafka"](broker.bootstrap, NAME)
        wait_until_nothing_hangs(client, topic, 2)
        successor.begin()
        successor.send(topic.name, b"successor 0", 0)
        successor.send(topic.name, b"successor 1", 1)
        open_ends = [ends(client, topic, partition) for partition in (0, 1)]
        zombie.wake()
        refusals = zombie.refusals()
        assert set(refusals) == {"send", "commit"}
        assert "Fenced" in refusals.values(), zombie.lines()[-2:]
        assert [ends(client, topic, partition) for partition in (0, 1)] == open_ends, "a zombie wrote"
        assert state_of(client, NAME) == "Ongoing"
        successor.commit()
    wait_until_nothing_hangs(client, topic, 2)
    assert sorted(everything(broker.bootstrap, topic.name, 2)) == [b"successor 0", b"successor 1"]
    assert [len(aborted(client, topic, partition)) for partition in (0, 1)] == [1, 1]
    assert [first for partition in (0, 1) for _, first in aborted(client, topic, partition)] == [0, 0]


def test_a_zombie_wakes_after_its_successor_and_after_a_restart(
    broker: BrokerProcess, client: RawClient, tmp_path: Path
) -> None:
    """The producer stays fenced if the broker dies meanwhile."""
    topic = settled_topic(client, 2)
    with ZombieProcess(tmp_path, "confluent-kafka", broker.bootstrap, NAME, topic.name, LONG_MS) as zombie:
        sent_at_least(zombie, SENT_MIN)
        zombie.stop()
        successor = TRANSACTIONAL["confluent-kafka"](broker.bootstrap, NAME)
        successor.begin()
        successor.send(topic.name, b"successor", 0)
        successor.commit()
        broker.restart(signal.SIGKILL)
        with connected(broker.bootstrap) as again:
            before = wait_until_nothing_hangs(again, topic, 2)
            zombie.wake()
            assert "Fenced" in zombie.refusals().values(), zombie.lines()[-2:]
            assert wait_until_nothing_hangs(again, topic, 2) == before
    assert everything(broker.bootstrap, topic.name, 2) == [b"successor"]


def test_the_transaction_of_a_dead_client_is_aborted(
    broker: BrokerProcess, client: RawClient, tmp_path: Path
) -> None:
    """Readers go on, and the tools show what happened."""
    topic = settled_topic(client, 2)
    with ZombieProcess(tmp_path, "confluent-kafka", broker.bootstrap, NAME, topic.name, MEDIUM_MS) as zombie:
        sent_at_least(zombie, ONE_FOR_EACH_PARTITION)
        zombie.kill()
    assert (state_of(client, NAME), listed(client, "Ongoing")) == ("Ongoing", {NAME})
    assert ends(client, topic).stable == 0
    wait_for_state(client, NAME, "CompleteAbort")
    assert (listed(client, "Ongoing"), listed(client, "CompleteAbort")) == (set(), {NAME})
    wait_until_nothing_hangs(client, topic, 2)
    assert [len(aborted(client, topic, partition)) for partition in (0, 1)] == [1, 1]
    assert everything(broker.bootstrap, topic.name, 2) == []


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGKILL])
def test_the_transaction_of_a_dead_client_is_aborted_after_a_restart(
    broker: BrokerProcess, client: RawClient, tmp_path: Path, with_signal: int
) -> None:
    """The timeout of a transaction goes on while the broker is down."""
    topic = settled_topic(client, 2)
    with ZombieProcess(tmp_path, "confluent-kafka", broker.bootstrap, NAME, topic.name, SHORT_MS) as zombie:
        sent_at_least(zombie, ONE_FOR_EACH_PARTITION)
        zombie.kill()
        broker.restart(with_signal)
    with connected(broker.bootstrap) as again:
        wait_for_state(again, NAME, "CompleteAbort")
        wait_until_nothing_hangs(again, topic, 2)
        assert [len(aborted(again, topic, partition)) for partition in (0, 1)] == [1, 1]
        assert everything(broker.bootstrap, topic.name, 2) == []
