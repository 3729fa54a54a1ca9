"""The coordinator of a transaction is killed at each step of its end: the next one comes to the same outcome
on all partitions, and the offsets of the transaction agree with its records."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from tests.jepsen import transactions
from tests.jepsen.clients import library
from tests.jepsen.clients.base import Group, OperationError, encode
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import Brokers, Killed, TransactionCoordinator
from tests.jepsen.network import FETCH, WRITE_TXN_MARKERS, Hold, Which
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage

from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

PARTITIONS = 6
OFFSET = 7
LOAD = Load(writers=1, pipelining_writers=0, readers=1, classic_groups=0, modern_groups=0, copiers=1)
# A fetch waits for records for so long. When followers have not asked for twice as long, no answer is under
# way to them.
FETCH_WAIT_SECONDS = 0.5
ANSWER_SECONDS_MAX = 60.0
# After so long nothing of the other clients is under way.
QUIET_SECONDS = 0.5
MARKERS, FETCHES = Which(WRITE_TXN_MARKERS), Which(FETCH)


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    # Followers that are held back for a moment stay in sync, so that one of them leads next.
    return {"watches_brokers": True, "overrides": {"replica.lag.time.max.ms": "10000"}}


@dataclass
class Ending:
    """The end of one transaction that writes to all partitions of a topic, and commits an offset."""

    stage: Stage
    system: FaultyCluster
    places: list[TopicPartition]
    chance: Random

    def __post_init__(self) -> None:
        self.name = f"{self.stage.name}-ending"
        self.group = f"{self.name}-group"
        self.is_commit = self.chance.random() < 0.6
        self.library = self.chance.choice(("ours", "confluent"))
        (self.coordinator,) = TransactionCoordinator(self.name).find(self.system)
        self.others = [id_ for id_ in self.system.brokers if id_ != self.coordinator]
        self.error: OperationError | None = None

    # ---- the client

    @contextmanager
    def begun(self) -> Iterator[Callable[[], None]]:
        """A transaction with one record in each partition. What it yields ends it, and returns when the
        client was told so."""
        chosen, bootstrap = library(self.library), self.system.bootstrap
        reader = chosen.reader(bootstrap, "ending-reader", Group(self.group))
        writer = chosen.transactional_writer(bootstrap, "ending", self.name)

        def end() -> None:
            try:
                writer.commit() if self.is_commit else writer.abort()
            except OperationError as error:
                self.error = error

        try:
            writer.begin()
            sent = writer.send([(place, number) for number, place in enumerate(self.places)])
            assert all(each.error is None for each in sent), sent
            writer.send_offsets(reader, {self.places[0]: OFFSET})
            assert transactions.undecided(self.system, self.places) == set(self.places)
            yield end
        finally:
            writer.close()
            reader.close()

    # ---- the coordinator

    @contextmanager
    def held_markers(self, *targets: int, answers: bool = False) -> Iterator[list[Hold]]:
        with ExitStack() as holds:
            yield [
                holds.enter_context(
                    self.system.frames_between(self.coordinator, target).hold(MARKERS, answers=answers)
                )
                for target in targets
            ]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Without other transactions. A broker gets one request with markers at a time: while the answer for
        another transaction is held back, the markers of this one are not sent."""
        drivers = self.stage.workload.drivers
        for driver in drivers:
            driver.pause()
        try:
            time.sleep(QUIET_SECONDS)
            yield
        finally:
            for driver in drivers:
                driver.resume()

    @contextmanager
    def held_followers(self) -> Iterator[None]:
        """What the coordinator appends meanwhile is only in its own log."""
        with ExitStack() as holds:
            for source in self.others:
                frames = self.system.frames_between(source, self.coordinator)
                holds.enter_context(frames.hold(FETCHES)).wait()
            self.stage.run(2 * FETCH_WAIT_SECONDS)
            yield

    def led_by(self, *broker_ids: int) -> set[TopicPartition]:
        return {place for place in self.places if self.system.leader_of(place) in broker_ids}

    def wait_for_markers(self, *broker_ids: int) -> None:
        """Return when the partitions of these brokers have their markers."""
        places = self.led_by(*broker_ids)
        self.system.wait_until(
            lambda: not transactions.undecided(self.system, self.places) & places,
            f"brokers {broker_ids} have their markers",
        )

    @property
    def state(self) -> str:
        return transactions.transaction_state(self.system, self.name)

    @property
    def prepared(self) -> str:
        return "PrepareCommit" if self.is_commit else "PrepareAbort"

    @property
    def complete(self) -> str:
        return "CompleteCommit" if self.is_commit else "CompleteAbort"


Step = Callable[[Ending, Callable[[], None]], Any]


@contextmanager
def requested(ending: Ending, end: Callable[[], None]) -> Iterator[None]:
    """The decision is in the log of the coordinator only. The client asks the next coordinator again."""
    client = threading.Thread(target=end)
    with ending.held_followers():
        client.start()
        ending.stage.run(0.5)
        assert client.is_alive(), "the client was told of a decision that is not replicated"
        yield
    client.join(ANSWER_SECONDS_MAX)
    assert not client.is_alive(), "the client gets no answer from the next coordinator"


@contextmanager
def decided(ending: Ending, end: Callable[[], None]) -> Iterator[None]:
    """The decision is replicated. No other broker has a marker."""
    with ending.held_markers(*ending.others):
        end()
        ending.wait_for_markers(ending.coordinator)
        assert transactions.undecided(ending.system, ending.places) == ending.led_by(*ending.others)
        assert ending.state == ending.prepared
        yield


@contextmanager
def begun(ending: Ending, end: Callable[[], None]) -> Iterator[None]:
    """One of the other brokers has its markers, one has none."""
    with_markers, without = ending.chance.sample(ending.others, 2)
    with ending.held_markers(without):
        end()
        ending.wait_for_markers(ending.coordinator, with_markers)
        assert transactions.undecided(ending.system, ending.places) == ending.led_by(without)
        assert ending.state == ending.prepared
        yield


@contextmanager
def written(ending: Ending, end: Callable[[], None]) -> Iterator[None]:
    """All partitions have their markers, but the coordinator was not told."""
    with ending.alone(), ending.held_markers(*ending.others, answers=True):
        end()
        ending.wait_for_markers(*ending.system.brokers)
        assert ending.state == ending.prepared
        yield


@contextmanager
def completed(ending: Ending, end: Callable[[], None]) -> Iterator[None]:
    """The coordinator knows that all markers are written, and nobody else does."""
    with ending.alone(), ending.held_markers(*ending.others, answers=True) as holds:
        end()
        ending.wait_for_markers(*ending.system.brokers)
        with ending.held_followers():
            for hold in holds:
                hold.release()
            ending.stage.run(0.3)
            yield


@pytest.mark.parametrize("step", [requested, decided, begun, written, completed])
def test_the_coordinator_is_killed_while_a_transaction_ends(
    run: Run, system: FaultyCluster, make_topic: MakeTopic, step: Step
) -> None:
    places = transactions.places_of(make_topic(PARTITIONS), PARTITIONS)
    with run(LOAD) as stage:
        ending = Ending(stage, system, places, Random(f"{step.__name__}-{stage.seed}"))
        stage.note(f"{ending.prepared} by {ending.library}, killed when it is {step.__name__}")
        fault = Killed(system, Brokers(ending.coordinator))
        with ending.begun() as end:
            with ExitStack() as restart:
                with step(ending, end):
                    restart.enter_context(stage.fault(fault))
                stage.wait_until_writable("writable after the kill")
                transactions.wait_until_decided(system, places)
                check_outcome(ending)
            stage.wait_until_in_sync()
            check_outcome(ending)
        check_group(ending)


def check_outcome(ending: Ending) -> None:
    """It is what the client asked for, on all partitions."""
    assert ending.error is None, ending.error
    values = transactions.committed_values(ending.system, ending.places)
    expected = {
        place: [encode(number)] if ending.is_commit else [] for number, place in enumerate(ending.places)
    }
    assert values == expected
    system = ending.system
    system.wait_until(lambda: ending.state == ending.complete, f"the transaction is {ending.complete}")


def check_group(ending: Ending) -> None:
    reader = library("ours").reader(ending.system.bootstrap, "committed", Group(ending.group))
    try:
        found = reader.committed(ending.places[:1])
    finally:
        reader.close()
    assert found == {ending.places[0]: OFFSET if ending.is_commit else None}
