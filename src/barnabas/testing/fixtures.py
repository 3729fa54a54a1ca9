"""The pytest plugin. See docs/testing.md.

barnabas_broker           a broker in this process for all tests, or with another scope (barnabas_scope)
barnabas_new_broker       a broker of this test alone; with barnabas_clock in the same test, on that clock
barnabas_process          a broker of this test alone, in a process of its own, to kill and restart
barnabas_clock            time that only the test moves
barnabas_cluster          three brokers in processes of their own, shared as barnabas_broker is
barnabas_faults           barnabas_cluster, to be broken: after the test it is whole again
barnabas_topic            a new topic on barnabas_broker; barnabas_topics(partitions=3, ...) makes more

barnabas_settings and barnabas_cluster_settings are for conftest.py: fixtures that return Kafka's config keys.
With pytest-xdist, each worker has brokers of its own. If a test with a cluster fails, its report has the last
lines that the brokers printed."""

import re
import sys
import uuid
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol, cast

import pytest

if TYPE_CHECKING:
    from barnabas.clock import FakeClock
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import Cluster

SCOPES = ("session", "package", "module", "class", "function")
Scope = Literal["session", "package", "module", "class", "function"]
# The longest part of a test's name in the name of a topic. Kafka allows 249 characters in all.
NAME_LENGTH_MAX = 100


class MakeTopic(Protocol):
    """The fixture barnabas_topics: creates a topic and returns its name."""

    def __call__(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "how long barnabas_broker and barnabas_cluster live: session (default), module, class or function"
    parser.addini("barnabas_scope", text, default="session")
    parser.getgroup("barnabas").addoption("--barnabas-scope", choices=SCOPES, help=text)


def pytest_configure(config: pytest.Config) -> None:
    chosen = _scope("", config)
    if chosen not in SCOPES:
        raise pytest.UsageError(f"barnabas_scope is {chosen!r}: it must be one of {', '.join(SCOPES)}.")


def _scope(fixture_name: str, config: pytest.Config) -> Scope:
    return cast(Scope, config.getoption("--barnabas-scope") or config.getini("barnabas_scope"))


# ---- settings, for conftest.py


@pytest.fixture(scope="session")
def barnabas_settings() -> Mapping[str, str]:
    """Kafka's config keys for the brokers; replace this fixture in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def barnabas_cluster_settings() -> Mapping[str, str]:
    """Kafka's config keys for the brokers of clusters; replace this fixture in conftest.py."""
    return {}


# ---- brokers


@pytest.fixture(scope=_scope)
def barnabas_broker(barnabas_settings: Mapping[str, str]) -> "Iterator[Broker]":
    """A broker in this process; `barnabas_broker.bootstrap` is its host:port."""
    from barnabas.testing.broker import Broker

    with Broker(barnabas_settings) as broker:
        yield broker


@pytest.fixture
def barnabas_new_broker(
    request: pytest.FixtureRequest, barnabas_settings: Mapping[str, str]
) -> "Iterator[Broker]":
    """A broker of this test alone, in this process."""
    from barnabas.testing.broker import Broker

    is_timed = "barnabas_clock" in request.fixturenames
    clock = request.getfixturevalue("barnabas_clock") if is_timed else None
    with Broker(barnabas_settings, clock=clock) as broker:
        yield broker


@pytest.fixture
def barnabas_process(barnabas_settings: Mapping[str, str]) -> "Iterator[Broker]":
    """A broker of this test alone, in a process of its own: kill(), restart(), output()."""
    from barnabas.testing.broker import Broker

    with Broker(barnabas_settings, subprocess=True) as broker:
        yield broker


@pytest.fixture
def barnabas_clock() -> "FakeClock":
    """The time of barnabas_new_broker, which begins now and moves by advance(milliseconds) only."""
    import time

    from barnabas.clock import FakeClock

    return FakeClock(time.time_ns() // 1_000_000)


# ---- clusters


@pytest.fixture(scope=_scope)
def barnabas_cluster(barnabas_cluster_settings: Mapping[str, str]) -> "Iterator[Cluster]":
    """Three brokers in processes of their own; `barnabas_cluster.bootstrap` has their addresses."""
    from barnabas.testing.cluster import Cluster

    with Cluster(brokers=3, overrides=barnabas_cluster_settings) as cluster:
        yield cluster


@pytest.fixture
def barnabas_faults(barnabas_cluster: "Cluster") -> "Iterator[Cluster]":
    """The cluster, to be broken: cut(), degrade(), pause(), kill(), stop(). After the test all links are
    healed, paused brokers go on, and those that ended are started again."""
    yield barnabas_cluster
    barnabas_cluster.heal()
    for broker_id, broker in barnabas_cluster.brokers.items():
        if broker.is_running:
            barnabas_cluster.resume(broker_id)
    ended = [id_ for id_, broker in barnabas_cluster.brokers.items() if not broker.is_running]
    if ended:
        barnabas_cluster.restart(*ended)


# ---- topics


@pytest.fixture
def barnabas_topics(barnabas_broker: "Broker", request: pytest.FixtureRequest) -> "MakeTopic":
    """Makes topics on barnabas_broker: barnabas_topics(partitions=3, configs={...}) returns a new name."""
    return _maker_of_topics(barnabas_broker.bootstrap, request)


@pytest.fixture
def barnabas_topic(barnabas_topics: "MakeTopic") -> str:
    """The name of a new, empty topic with one partition on barnabas_broker."""
    return barnabas_topics()


def _maker_of_topics(bootstrap: str, request: pytest.FixtureRequest) -> "MakeTopic":
    from barnabas import Admin, NewTopic

    def make(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        # The name of the test, so that logs can be read, and a part that no other test or worker has.
        test = re.sub(r"[^\w.-]+", "-", request.node.name, flags=re.ASCII)[:NAME_LENGTH_MAX].strip("-")
        name = f"{test}-{uuid.uuid4().hex[:12]}"
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(name, partitions, configs=configs or {})])
        return name

    return make


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
