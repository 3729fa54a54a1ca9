"""One broker for all pitfalls, connections to it, and a check that no handler failed.

BARNABAS_TEST_BOOTSTRAP=127.0.0.1:port points the same tests at another broker, for example at Apache Kafka,
to see that the tests themselves are right."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient

from barnabas.testing import Broker

FOREIGN_BOOTSTRAP = os.environ.get("BARNABAS_TEST_BOOTSTRAP")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    if FOREIGN_BOOTSTRAP:
        # Not started: only its address is used.
        yield Broker(data_dir=Path(), port=int(FOREIGN_BOOTSTRAP.rpartition(":")[2]))
        return
    with Broker({"num.partitions": "4"}) as broker:
        yield broker


@pytest.fixture
def connect(broker: Broker) -> Iterator[Callable[[], RawClient]]:
    """Opens connections that are closed when the test ends."""
    clients: list[RawClient] = []

    def connect() -> RawClient:
        clients.append(RawClient("127.0.0.1", broker.port))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[[], RawClient]) -> RawClient:
    return connect()


@pytest.fixture(autouse=True)
def no_handler_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A closed connection is often the right answer, but never because of a traceback."""
    caplog.set_level(logging.ERROR, logger="barnabas")
    yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []
