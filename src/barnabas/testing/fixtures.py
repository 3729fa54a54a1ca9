"""The pytest plugin: the fixture `barnabas_broker`, one broker for the whole test session."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker


@pytest.fixture(scope="session")
def barnabas_broker() -> "Iterator[Broker]":
    """A broker in this process; `barnabas_broker.bootstrap` is its host:port."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker
