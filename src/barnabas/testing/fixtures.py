"""The pytest plugin: the fixtures `barnabas_broker` and `barnabas_cluster`, one for the whole test session.

If a test with a cluster fails, its report has the last lines that the brokers printed."""

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import Cluster


@pytest.fixture(scope="session")
def barnabas_broker() -> "Iterator[Broker]":
    """A broker in this process; `barnabas_broker.bootstrap` is its host:port."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def barnabas_cluster() -> "Iterator[Cluster]":
    """Three brokers in processes of their own; `barnabas_cluster.bootstrap` has their addresses."""
    from barnabas.testing.cluster import Cluster

    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    # Imported only by those who use it: this plugin is loaded in every test session.
    module = sys.modules.get("barnabas.testing.cluster")
    if module is not None and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, module.Cluster):
                report.sections += [(f"Output of {name}", text) for name, text in value.outputs().items()]
    return report
