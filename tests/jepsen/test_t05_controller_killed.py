"""The controller is killed (kill -9), also while topics are created, replicas move or ISRs change: another
broker is the controller with a higher epoch, what was begun ends or fails cleanly, and no topic is half
there."""

import threading
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest
from tests.jepsen import views
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Brokers, Controller, Killed, Paused
from tests.jepsen.faults.membership import replicas_of, wait_for_moves
from tests.jepsen.plans import Load
from tests.jepsen.results import PEER
from tests.jepsen.stage import Stage
from tests.support.raw_calls import CREATE_TOPICS
from tests.support.raw_client import RawClient

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.errors import error_of
from barnabas.ids import TopicPartition
from barnabas.wire.messages import create_topics

pytestmark = pytest.mark.faults

LOAD = Load(writers=2, pipelining_writers=1, transactional_writers=1, readers=1)
NEW_TOPICS, NEW_PARTITIONS = 12, 4
CREATE_VERSION = 7
RECORDS = 200
READ_SECONDS_MAX = 30.0
KNOWN_SECONDS_MAX = 2.0


class Controllers:
    """The controllers of a run: each has a higher epoch than the one before."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._first = stage.system.controller()
        self._epochs = views.elections(stage)

    def check(self, changes: int) -> None:
        """There is another one than at first; and there were so many changes, not more."""
        (now,) = Controller().find(self._stage.system)
        assert now != self._first
        if PEER == "barnabas":
            later = views.elections(self._stage)[len(self._epochs) :]
            assert len(later) == changes, f"the controllers had the epochs {self._epochs}, then {later}"
            assert [*self._epochs, *later] == sorted({*self._epochs, *later})


class InBackground:
    """Something that the test does not wait for; `failure` is the error with which it ended."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.failure: KafkaError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except KafkaError as error:
            self.failure = error

    def wait(self) -> None:
        self._thread.join(90)
        assert not self._thread.is_alive(), "no answer, and no error either"


def test_the_controller_is_killed(run: Run) -> None:
    with run() as stage:
        controllers = Controllers(stage)
        stage.run(Random(stage.seed).uniform(0.2, 1.0))
        with stage.fault(Killed(stage.system, Controller())):
            stage.wait_until_writable("writable after the kill")
            controllers.check(changes=1)
        controllers.check(changes=1)


def test_a_controller_that_was_replaced_goes_on(run: Run) -> None:
    """It was paused with a request that it has not read yet: its epoch is old, so it cannot carry it out."""
    with run(LOAD) as stage:
        controllers = Controllers(stage)
        name = f"{stage.name}-late"
        fault = Paused(stage.system, Controller())
        with stage.fault(fault):
            (old,) = fault.broker_ids
            with RawClient("127.0.0.1", stage.system.brokers[old].port) as client:
                client.send(CREATE_TOPICS, CREATE_VERSION, creation(name))
                stage.wait_until_writable("writable after the pause began")
                controllers.check(changes=1)
                stage.system.brokers[old].resume()
                _, answer = client.receive(CREATE_TOPICS, CREATE_VERSION)
        code = answer.topics[0].error_code
        stage.note(f"the old controller answered {error_of(code).name}")
        assert wholly_there(stage, name) == (code == 0)
        controllers.check(changes=1)


def creation(name: str) -> create_topics.CreateTopicsRequest:
    topic = create_topics.CreatableTopic(name=name, num_partitions=NEW_PARTITIONS, replication_factor=3)
    return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=20_000)


# ---- topics


def test_the_controller_is_killed_while_topics_are_created(run: Run) -> None:
    with run(LOAD) as stage:
        controllers, chance = Controllers(stage), Random(stage.seed)
        names = [f"{stage.name}-new-{number}" for number in range(NEW_TOPICS)]
        creating = [InBackground(lambda name=name: create(stage, name)) for name in names]  # type: ignore[misc]
        time.sleep(chance.uniform(0.0, 0.3))
        with stage.fault(Killed(stage.system, Controller())):
            stage.wait_until_writable("writable after the kill")
            for each in creating:
                each.wait()
            controllers.check(changes=1)
        for name, each in zip(names, creating, strict=True):
            code = None if each.failure is None else each.failure.code
            is_there = wholly_there(stage, name)
            # Its answer may be lost: then the client asks again, and is told that the topic exists.
            assert is_there or code not in (None, ErrorCode.TOPIC_ALREADY_EXISTS), f"{name}: {code}"
            if not is_there:
                create(stage, name)
                assert wholly_there(stage, name)
        with stage.system.admin() as admin:
            admin.delete_topics(names)


def create(stage: Stage, name: str) -> None:
    with stage.system.admin() as admin:
        admin.create_topics([NewTopic(name, NEW_PARTITIONS, 3)])


def wholly_there(stage: Stage, name: str) -> bool:
    """Whether the topic exists: then all brokers know all its partitions, and all can be written to. If not,
    no broker knows anything of it, nor has files."""
    ids = {described(stage, name, broker_id) for broker_id in stage.system.brokers}
    if ids == {None}:
        assert list(copies(stage, name)) == []
        return False
    assert None not in ids and len(ids) == 1, f"brokers disagree about {name}: {ids}"
    stage.system.wait_until_in_sync(name)
    with barnabas.Producer(bootstrap_servers=stage.system.bootstrap) as producer:
        for partition in range(NEW_PARTITIONS):
            producer.send(name, b"first", partition=partition).result(30)
    assert sorted(copies(stage, name)) == sorted(list(range(NEW_PARTITIONS)) * 3)
    return True


def described(stage: Stage, name: str, broker_id: int) -> tuple[bytes, int] | None:
    """What one broker knows: the topic's id and how many partitions it has."""
    with stage.system.admin(broker_id) as admin:
        try:
            topic = admin.describe_topics([name])[name]
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
    return bytes(topic.topic_id), len(topic.partitions)


def copies(stage: Stage, name: str) -> Iterator[int]:
    """The partitions of a topic for which brokers have directories; one with three replicas comes thrice."""
    for broker in stage.system.brokers.values():
        for path in broker.data_dir.glob(f"{name}-*"):
            number = path.name.removeprefix(f"{name}-")
            if number.isdigit():
                yield int(number)


# ---- replicas that move


def test_the_controller_is_killed_while_replicas_move(run: Run) -> None:
    with run(LOAD) as stage:
        controllers, chance = Controllers(stage), Random(stage.seed)
        before = make_pairs(stage)
        values = write_records(stage, list(before))
        after = {place: next_pair(stage, replicas) for place, replicas in before.items()}
        moving = InBackground(lambda: move(stage, after))
        time.sleep(chance.uniform(0.0, 0.2))
        with stage.fault(Killed(stage.system, Controller())):
            stage.wait_until_writable("writable after the kill")
            moving.wait()
            controllers.check(changes=1)
        wait_for_moves(stage.system)
        topic = next(iter(before)).topic
        outcomes = [after] if moving.failure is None else [before, after]
        # The broker that answers may learn of the end of a move a moment later than the controller.
        ended = time.monotonic()
        stage.system.wait_until(
            lambda: all(
                any(replicas == outcome[place] for outcome in outcomes)
                for place, replicas in replicas_of(stage.system, [topic]).items()
            ),
            f"{topic} is where it was or where it should be; the request got {moving.failure}",
        )
        stage.record_recovery("all know of the moves", time.monotonic() - ended, KNOWN_SECONDS_MAX)
        stage.system.wait_until_in_sync(topic)
        assert read_records(stage, list(before)) == values
        with stage.system.admin() as admin:
            admin.delete_topics([topic])


def make_pairs(stage: Stage) -> dict[TopicPartition, list[int]]:
    """A topic whose partitions have two replicas, on all pairs of brokers."""
    ids = sorted(stage.system.brokers)
    pairs = {number: [ids[number % 3], ids[(number + 1) % 3]] for number in range(NEW_PARTITIONS)}
    name = f"{stage.name}-pairs"
    with stage.system.admin() as admin:
        configs = {"min.insync.replicas": "1"}
        admin.create_topics([NewTopic(name, assignments=pairs, configs=configs)])
    stage.system.wait_until_in_sync(name)
    return {TopicPartition(name, number): replicas for number, replicas in pairs.items()}


def next_pair(stage: Stage, replicas: list[int]) -> list[int]:
    """Without the first of them, with the broker that has no replica yet."""
    (other,) = set(stage.system.brokers) - set(replicas)
    return [replicas[1], other]


def move(stage: Stage, replicas: dict[TopicPartition, list[int]]) -> None:
    with stage.system.admin() as admin:
        admin.alter_partition_reassignments(replicas)


def write_records(stage: Stage, places: list[TopicPartition]) -> list[tuple[TopicPartition, bytes]]:
    """The same number to each partition; returns the partition and the value of each."""
    written = [(place, b"%d" % number) for place in places for number in range(RECORDS)]
    with barnabas.Producer(bootstrap_servers=stage.system.bootstrap) as producer:
        sent = [producer.send(place.topic, value, partition=place.partition) for place, value in written]
        for each in sent:
            each.result(30)
    return written


def read_records(stage: Stage, places: list[TopicPartition]) -> list[tuple[TopicPartition, bytes]]:
    """All records, those of one partition after those of the other."""
    found: list[tuple[TopicPartition, bytes]] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    with barnabas.Consumer(
        bootstrap_servers=stage.system.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        while len(found) < RECORDS * len(places) and time.monotonic() < deadline:
            polled = consumer.poll(1.0)
            found += [(TopicPartition(each.topic, each.partition), each.value or b"") for each in polled]
    return sorted(found, key=lambda each: each[0])


# ---- ISRs that change


def test_the_controller_is_killed_while_replicas_leave_the_isr(run: Run) -> None:
    with run(LOAD) as stage:
        controllers, chance = Controllers(stage), Random(stage.seed)
        follower = Paused(stage.system, Brokers(chance.choice(others_than_controller(stage))))
        with stage.fault(follower):
            # It leaves the ISRs after two seconds; its session lasts for three.
            stage.run(chance.uniform(1.7, 2.4))
            killed = Killed(stage.system, Controller())
            with stage.fault(killed):
                stage.system.brokers[follower.broker_ids[0]].resume()
                stage.wait_until_writable("writable after the kill")
                controllers.check(changes=1)


def test_the_controller_is_killed_while_replicas_join_the_isr(run: Run) -> None:
    with run(LOAD) as stage:
        controllers, chance = Controllers(stage), Random(stage.seed)
        follower = Brokers(chance.choice(others_than_controller(stage)))
        with stage.fault(Killed(stage.system, follower)):
            stage.wait_until_writable("writable after the kill of a follower")
        time.sleep(chance.uniform(0.0, 0.3))
        with stage.fault(Killed(stage.system, Controller())):
            stage.wait_until_writable("writable after the kill of the controller")
            controllers.check(changes=1)


def others_than_controller(stage: Stage) -> list[int]:
    controller = stage.system.controller()
    return [broker_id for broker_id in stage.system.brokers if broker_id != controller]
