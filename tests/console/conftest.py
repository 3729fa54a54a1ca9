"""One broker and one console for the tests that do not need their own.

BARNABAS_TEST_BOOTSTRAP=host:port points these tests at another broker, for example at Apache Kafka."""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from tests.console.served import Api, console

from barnabas import Admin
from barnabas.client.admin import NewTopic
from barnabas.testing import Broker

MakeTopic = Callable[..., str]


FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")


class Peer(NamedTuple):
    """The broker that the console shows."""

    bootstrap: str


@pytest.fixture(scope="session")
def broker() -> Iterator[Peer]:
    if FOREIGN_BOOTSTRAP is not None:
        yield Peer(FOREIGN_BOOTSTRAP)
        return
    with Broker() as broker:
        yield Peer(broker.bootstrap)


@pytest.fixture(scope="session")
def shared_api(broker: Peer) -> Iterator[Api]:
    with console(broker.bootstrap) as api:
        yield api


@pytest.fixture
def api(shared_api: Api) -> Api:
    shared_api.begin()
    return shared_api


@pytest.fixture(scope="session")
def admin(broker: Peer) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


@pytest.fixture
def make_topic(admin: Admin) -> MakeTopic:
    def make(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:8]}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, settings)])
        return name

    return make
