"""ZooKeeper fails: one server of three is killed, all are down, all are slow, the sessions of all brokers
expire at once. Leaders go on serving without it; afterwards the metadata is what it was and can change."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.jepsen.conftest import Run
from tests.jepsen.faults import SessionsExpired, ZooKeeperDown, ZooKeeperServerKilled, ZooKeeperSlow
from tests.jepsen.faults.membership import replicas_of
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage
from tests.jepsen.told import failures
from tests.jepsen.views import elections, expirations, leaders

from barnabas.client.admin import NewTopic
from barnabas.client.errors import KafkaError

pytestmark = pytest.mark.faults

# No client ends by itself: a new one may need a producer id, and with it ZooKeeper.
LOAD = Load(crash_share=0, transactional_writers=1)
WRITERS = ("writer", "pipelining_writer")
# A multiple of what a slow answer takes.
SESSION_MS = 9000
SLOW_MS = 2000


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    return {"zookeepers": 3, "overrides": {"zookeeper.session.timeout.ms": str(SESSION_MS)}}


@contextmanager
def unchanged_metadata(stage: Stage) -> Iterator[None]:
    """After this block the topics and their replicas are what they were, every broker is registered, all
    agree on one controller, and the metadata can change."""
    before = replicas_of(stage.system)
    yield
    wait_until_agreed(stage)
    assert replicas_of(stage.system, sorted({place.topic for place in before})) == before
    create(stage, "after", seconds=stage.recovery_seconds_max)


def create(stage: Stage, name: str, seconds: float) -> None:
    with stage.system.admin() as admin:
        admin.create_topics([NewTopic(f"{stage.name}-{name}", 1, 3)], timeout=seconds)
        admin.delete_topics([f"{stage.name}-{name}"])


def wait_until_agreed(stage: Stage) -> None:
    def views() -> Iterator[tuple[int, tuple[int, ...]]]:
        for broker_id in stage.system.brokers:
            with stage.system.admin(broker_id) as admin:
                cluster = admin.describe_cluster()
            controller = -1 if cluster.controller is None else cluster.controller.id
            yield controller, tuple(sorted(node.id for node in cluster.nodes))

    def is_agreed() -> bool:
        found = set(views())
        ((controller, nodes), *others) = found
        return not others and controller > 0 and nodes == tuple(sorted(stage.system.brokers))

    stage.system.wait_until(is_agreed, "all brokers know each other and the same controller")


def test_one_server_is_killed(run: Run) -> None:
    with run(LOAD) as stage, unchanged_metadata(stage):
        number = random.Random(stage.seed).choice([None, 1, 2, 3])
        begin, expired, led = time.monotonic(), expirations(stage), leaders(stage)
        with stage.fault(ZooKeeperServerKilled(stage.system, number)):
            create(stage, "during", seconds=stage.recovery_seconds_max)
            stage.run(3.0)
        stage.run(1.0)
        assert failures(stage, ["send", "txn", "commit"], begin) == []
        assert (expirations(stage), leaders(stage)) == (expired, led)


def test_all_servers_are_down(run: Run) -> None:
    with run(LOAD) as stage, unchanged_metadata(stage):
        # Longer than a session, and now and then a minute.
        seconds = 60.0 if stage.seed % 10 == 0 else random.Random(stage.seed).uniform(10, 14)
        led, elected, begin = leaders(stage), elections(stage), time.monotonic()
        with stage.fault(ZooKeeperDown(stage.system)):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                stage.wait_for_progress(kinds=WRITERS)
                stage.run(1.0)
            with pytest.raises(KafkaError):
                create(stage, "during", seconds=0.5)
            stage.wait_for_progress(kinds=(*WRITERS, "transactional_writer", "group_member", "reader"))
            assert leaders(stage) == led
            assert failures(stage, ["send", "txn", "commit"], begin) == []
        stage.run(2.0)
        assert len(elections(stage)) - len(elected) <= 1, elections(stage)


def test_all_servers_are_slow(run: Run) -> None:
    with run(LOAD) as stage, unchanged_metadata(stage):
        led, expired, begin = leaders(stage), expirations(stage), time.monotonic()
        with stage.fault(ZooKeeperSlow(stage.system, SLOW_MS)):
            create(stage, "during", seconds=60.0)
            asked_seconds = time.monotonic() - begin
            stage.run(6.0)
        assert asked_seconds >= SLOW_MS / 1000
        assert failures(stage, ["send", "txn", "commit"], begin) == []
        assert (expirations(stage), leaders(stage)) == (expired, led)


def test_the_sessions_of_all_brokers_expire(run: Run) -> None:
    with run(LOAD) as stage, unchanged_metadata(stage):
        stage.run(random.Random(stage.seed).uniform(1, 2))
        elected, expired = elections(stage), expirations(stage)
        with stage.fault(SessionsExpired(stage.system)):
            stage.system.wait_until(
                lambda: expirations(stage) >= expired + len(stage.system.brokers),
                "all brokers notice that their session has expired",
            )
        # Until then the brokers have their old view, in which everything is well.
        stage.system.wait_until(lambda: len(elections(stage)) > len(elected), "a controller is elected")
        stage.wait_until_in_sync()
        wait_until_agreed(stage)
        new = elections(stage)[len(elected) :]
        assert len(new) == 1, f"controllers were elected with the epochs {new}"
