"""The broker that is tested, and the clients that test it.

BARNABAS_TEST_BOOTSTRAP=host:port points the same tests at any other broker, for example at Apache Kafka,
to see that the tests themselves are right. Tests that kill their broker are then skipped, except those of our
own clients if BARNABAS_TEST_PEER=kafka: they start a Kafka of their own (`make test-kafka` sets both)."""

import gc
import os
import re
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.clients.aiokafka_client import AiokafkaAdmin, AiokafkaClient
from tests.clients.broker_process import BrokerProcess, running_broker
from tests.clients.client import Admin, Client, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.consumers import ConsumerSetup
from tests.clients.kafka_python_client import KafkaPythonAdmin, KafkaPythonClient
from tests.clients.members import Member

from barnabas.testing.broker import KEEP_OLD_RECORDS

CLIENTS: dict[str, Callable[[str], Client]] = {
    each.name: each for each in (ConfluentClient, KafkaPythonClient, AiokafkaClient)
}
ADMINS: dict[str, Callable[[str], Admin]] = {
    "confluent-kafka": ConfluentAdmin,
    "kafka-python": KafkaPythonAdmin,
    "aiokafka": AiokafkaAdmin,
}
FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
PEER = os.environ.get("BARNABAS_TEST_PEER", "barnabas")

MakeTopic = Callable[..., str]
Join = Callable[..., Member]
# Settings for coordinators that react faster than in production; Apache Kafka accepts them too.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """When a broker stops, the libraries leave sockets to the garbage collector; that is not tested here."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def _collect_what_the_libraries_left() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of one broker for the whole session, with Kafka's defaults, except that it keeps old
    records."""
    if FOREIGN_BOOTSTRAP:
        yield FOREIGN_BOOTSTRAP
        return
    with running_broker(tmp_path_factory.mktemp("broker"), KEEP_OLD_RECORDS) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def quick_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of one broker for the whole session with the coordinators of QUICK."""
    if FOREIGN_BOOTSTRAP:
        yield FOREIGN_BOOTSTRAP
        return
    with running_broker(tmp_path_factory.mktemp("quick"), QUICK | KEEP_OLD_RECORDS) as broker:
        yield broker.bootstrap
        assert "Traceback" not in broker.log_text(), broker.log_tail()


def _running_alone(
    request: pytest.FixtureRequest, directory: Path, overrides: Mapping[str, str] | None = None
) -> AbstractContextManager[Any]:
    if not FOREIGN_BOOTSTRAP:
        return running_broker(directory, overrides)
    if PEER != "kafka":
        pytest.skip("BARNABAS_TEST_BOOTSTRAP names a broker that this test must not kill")
    if not request.path.name.startswith("test_own_"):
        pytest.skip("how other clients behave when a Kafka ends is not tested here, and would take long")
    from tests.java.kafka_server import running_kafka

    return running_kafka(directory, overrides)


@pytest.fixture
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for this test only, which it may stop and kill."""
    with _running_alone(request, tmp_path) as broker:
        yield broker


@pytest.fixture
def own_quick_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for this test only, with the settings QUICK, which it may stop and kill."""
    with _running_alone(request, tmp_path, QUICK) as broker:
        yield broker
        assert "Traceback" not in broker.log_text(), broker.log_tail()


@pytest.fixture
def join(topic_name: str) -> Iterator[Join]:
    """join(library, bootstrap, topics=(...,), assignor="range", ...) -> a member of the test's group."""
    joined: list[Member] = []

    def join(library: str, bootstrap: str, commits: bool = False, **how: Any) -> Member:
        joined.append(
            Member(library, bootstrap, ConsumerSetup(**{"group": f"of-{topic_name}", **how}), commits)
        )
        return joined[-1]

    yield join
    for member in joined:
        member.leave()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    return CLIENTS[request.param](bootstrap)


@pytest.fixture(params=ADMINS)
def admin(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Admin]:
    admin = ADMINS[request.param](bootstrap)
    yield admin
    admin.close()


@pytest.fixture
def kafka_python_admin(bootstrap: str) -> Iterator[KafkaPythonAdmin]:
    """The admin client with the most calls."""
    admin = KafkaPythonAdmin(bootstrap)
    yield admin
    admin.close()


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A unique name; the topic does not exist."""
    readable = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:100].strip("-")
    return f"{readable}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def plain_admin(bootstrap: str) -> ConfluentAdmin:
    """For preparing a test that does not test the admin client."""
    return ConfluentAdmin(bootstrap)


@pytest.fixture
def make_topic(plain_admin: ConfluentAdmin, topic_name: str) -> MakeTopic:
    """Create the test's topic: make_topic(partitions=1, configs={...}) -> its name."""

    def make(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        plain_admin.create_topic(topic_name, partitions, configs=configs)
        if FOREIGN_BOOTSTRAP:
            # Kafka answers before the leaders know it; without idempotence, that reorders records.
            wait_until(lambda: plain_admin.is_led(topic_name, partitions), f"{topic_name} has its leaders")
        return topic_name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """One partition, default configuration."""
    return make_topic()


@pytest.fixture
def make_quick_topic(quick_bootstrap: str, topic_name: str) -> MakeTopic:
    """make_topic on the broker of quick_bootstrap."""

    def make(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        ConfluentAdmin(quick_bootstrap).create_topic(topic_name, partitions, configs=configs)
        return topic_name

    return make
