"""One broker and one console for the tests that do not need their own."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.console.served import Api, console

from barnabas import Admin
from barnabas.client.admin import NewTopic
from barnabas.testing import Broker

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def shared_api(broker: Broker) -> Iterator[Api]:
    with console(broker.bootstrap) as api:
        yield api


@pytest.fixture
def api(shared_api: Api) -> Api:
    shared_api.begin()
    return shared_api


@pytest.fixture(scope="session")
def admin(broker: Broker) -> Iterator[Admin]:
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
