"""One cluster for each module of tests of faults; after each test it is whole again. And runs on it, each
with a seed."""

import os
import re
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.plans import Load
from tests.jepsen.results import RUN, append_function, read_rows, rounds, seeds
from tests.jepsen.stage import Settings, Stage
from tests.jepsen.summary import number_of, outcomes, text_of
from tests.jepsen.systems import SharedSystem

from barnabas.client.admin import NewTopic

MakeTopic = Callable[..., str]
Run = Callable[..., Stage]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a seed runs ROUNDS times, each time with another one; see `_turns_of_others`."""
    if "seed" in metafunc.fixturenames:
        all_seeds = seeds()
        names = [f"round {place} of {len(all_seeds)}, seed {seed}" for place, seed in enumerate(all_seeds, 1)]
        metafunc.parametrize("seed", all_seeds, ids=names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """When a broker stops, the libraries leave sockets to the garbage collector; that is not tested here."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
    if rounds() > 1:
        left_out = _turns_of_others(items)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _turns_of_others(items: list[pytest.Item]) -> set[pytest.Item]:
    """The variants of a test share its rounds: they take turns, and each runs at least once."""
    variants: dict[Path, list[str]] = {}
    numbered = [item for item in items if number_of(_test_of(item)) and _seed_of(item) is not None]
    for item in numbered:
        known = variants.setdefault(item.path, [])
        if _variant_of(item) not in known:
            known.append(_variant_of(item))
    return {item for item in numbered if not _has_its_turn(item, variants[item.path])}


def _has_its_turn(item: pytest.Item, variants: list[str]) -> bool:
    turn = seeds().index(_seed_of(item) or 0)
    place = variants.index(_variant_of(item))
    return turn % len(variants) == place or turn == place % rounds()


def _variant_of(item: pytest.Item) -> str:
    """The name of the test without its round."""
    return re.sub(r"round \d+ of \d+, seed \d+", "", item.name)


def _test_of(item: pytest.Item) -> str:
    return item.path.stem.removeprefix("test_")


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    """Arguments of the module's cluster; a module may define its own."""
    return {}


@pytest.fixture(scope="module")
def shared_system(shape: dict[str, Any]) -> Iterator[SharedSystem]:
    shared = SharedSystem(shape)
    yield shared
    shared.discard()


HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[HAS_FAILED] = report.failed
    test = _test_of(item)
    if number_of(test) and (report.failed or (report.when == "call" and report.passed)):
        append_function(test, item.name.partition("[")[0], _seed_of(item), report.passed)
    return report


def _seed_of(item: pytest.Item) -> int | None:
    return item.callspec.params.get("seed") if hasattr(item, "callspec") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table of all tests in `make test-faults`, which sets ROUNDS."""
    found = outcomes(row for row in read_rows() if row.get("run") == RUN)
    if found and "ROUNDS" in os.environ:
        terminalreporter.ensure_newline()
        terminalreporter.write(text_of(found, has_colours=terminalreporter.hasmarkup))


@pytest.fixture
def system(shared_system: SharedSystem, request: pytest.FixtureRequest) -> Iterator[FaultyCluster]:
    """The module's cluster; it is whole when a test begins, and another one if the last test has failed."""
    yield shared_system.get()  # type: ignore[misc]  # Apache Kafka has what the tests that run on it need
    is_whole = False
    try:
        if not request.node.stash.get(HAS_FAILED, True):
            shared_system.get().make_whole()
            is_whole = True
    finally:
        if not is_whole:
            shared_system.discard()


@pytest.fixture
def make_topic(system: FaultyCluster, request: pytest.FixtureRequest) -> MakeTopic:
    """make_topic(partitions=1, replicas=3, configs={...}) creates a topic, and returns its name."""

    def make(partitions: int = 1, replicas: int = 3, configs: dict[str, str] | None = None) -> str:
        readable = re.sub(r"[^a-zA-Z0-9-]+", "-", request.node.name)[:80].strip("-")
        name = f"{readable}-{uuid.uuid4().hex[:6]}"
        with system.admin() as admin:
            # The test before this one may have taken the sessions of all brokers.
            system.wait_until(lambda: len(admin.describe_cluster().nodes) >= replicas, "living brokers")
            admin.create_topics([NewTopic(name, partitions, replicas, configs or {})])
        system.wait_until_in_sync(name)
        return name

    return make


@pytest.fixture
def run(system: FaultyCluster, seed: int, request: pytest.FixtureRequest) -> Run:
    """run(load, settings) is a Stage with the name of the test's module, and with its seed."""
    test = request.node.path.stem.removeprefix("test_")

    def make(load: Load | None = None, settings: Settings | None = None) -> Stage:
        return Stage(system, test, seed, load, settings)  # type: ignore[arg-type]

    return make
