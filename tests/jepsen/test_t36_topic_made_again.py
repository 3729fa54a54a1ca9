"""A topic is deleted and made again with the same name while clients use it: it has another id, requests with
the old id are refused, and no record, offset or file of the old topic is served for the new one."""

import abc
import contextlib
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.cluster.reading import end_of, values_of
from tests.jepsen import end_state
from tests.jepsen.clients import library
from tests.jepsen.clients.base import OK, Group, OperationError
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Brokers, Killed
from tests.jepsen.probes import leader_client, use_transactions
from tests.jepsen.stage import Stage
from tests.support.raw_calls import FETCH, METADATA, PRODUCE, Topic, batch_of, fetch_request, produce_request
from tests.support.raw_client import RawClient

from barnabas.client.admin import NewTopic
from barnabas.client.errors import KafkaError
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.faults

PARTITIONS = 2
REFUSED = {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
FETCH_BY_ID, PRODUCE_BY_ID, METADATA_BY_ID = 17, 13, 12
# After so long, all brokers know of the new topic, and clients have found it.
SETTLE_SECONDS = 3.0
OLD_RECORDS_MIN = 20


class Seen(NamedTuple):
    """A record that was acknowledged or read, and when the client began to ask for it, and had the answer."""

    place: TopicPartition
    offset: int
    value: int
    began: float
    ended: float


class Loop(abc.ABC):
    """Does something again and again in a thread of its own, until stop()."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[Seen] = []
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(0.01):
                began = time.monotonic()
                found = self.step()
                ended = time.monotonic()
                self.seen += [Seen(*each, began, ended) for each in found]
        except BaseException as failure:  # raised by stop(), in the test's thread
            self.failure = failure
        finally:
            self.close()

    @abc.abstractmethod
    def step(self) -> list[tuple[TopicPartition, int, int]]: ...

    @abc.abstractmethod
    def close(self) -> None: ...

    def since(self, moment: float) -> list[Seen]:
        """What was asked for after this."""
        return [each for each in list(self.seen) if each.began > moment]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "a client does not end"
        if self.failure is not None:
            raise AssertionError("a client has failed") from self.failure


class Writing(Loop):
    def __init__(self, name: str, bootstrap: str, places: list[TopicPartition], first: int) -> None:
        super().__init__(f"writer of {name}")
        self._writer = library(name).writer(bootstrap, f"writing-{name}")
        self._places, self._next = places, first

    def step(self) -> list[tuple[TopicPartition, int, int]]:
        self._next += 1
        place = self._places[self._next % len(self._places)]
        (sent,) = self._writer.send([(place, self._next)])
        return [(place, sent.offset, self._next)] if sent.outcome == OK and sent.offset is not None else []

    def close(self) -> None:
        self._writer.close()


class Reading(Loop):
    """By assignment, or as the member of a group."""

    def __init__(self, name: str, bootstrap: str, places: list[TopicPartition], group: str | None) -> None:
        super().__init__(f"reader of {name}" if group is None else f"member of {name}")
        self._places = {str(place): place for place in places}
        as_member = Group(group) if group is not None else None
        self._reader = library(name).reader(bootstrap, f"reading-{name}", as_member)
        if group is None:
            self._reader.assign(places)
        else:
            self._reader.subscribe([places[0].topic])

    def step(self) -> list[tuple[TopicPartition, int, int]]:
        with contextlib.suppress(OperationError):
            polled = [found for name, found in self._reader.poll(0.2) if name == "poll"]
            return [
                (self._places[key], offset, value)
                for found in polled
                for key, pairs in found.items()
                for offset, value in pairs
            ]
        return []

    def close(self) -> None:
        self._reader.close()


class Clients:
    """Writers and readers of one topic, of two libraries."""

    def __init__(self, bootstrap: str, places: list[TopicPartition]) -> None:
        self.writers = [
            Writing(name, bootstrap, places, first) for name, first in (("ours", 0), ("confluent", 10**6))
        ]
        self.own_reader = Reading("ours", bootstrap, places, None)
        members = [
            Reading(name, bootstrap, places, f"{places[0].topic}-{name}") for name in ("ours", "confluent")
        ]
        self.readers = [self.own_reader, Reading("confluent", bootstrap, places, None), *members]
        for each in (*self.writers, *self.readers):
            each.start()

    def wait_for_progress(self, system: FaultyCluster, since: float, count: int, what: str) -> None:
        try:
            system.wait_until(lambda: not self._behind(since, count), f"all clients {what}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; these do not: {self._behind(since, count)}") from error

    def _behind(self, since: float, count: int) -> list[str]:
        """The clients that have done less than that."""
        for each in (*self.writers, *self.readers):
            assert each.failure is None, each.failure
        return [each.name for each in (*self.writers, *self.readers) if len(each.since(since)) < count]

    def stop(self) -> None:
        with contextlib.ExitStack() as stopping:
            for each in (*self.readers, *self.writers):
                stopping.callback(each.stop)


def make(system: FaultyCluster, name: str) -> Topic:
    with system.admin() as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 3)])
        created: list[Topic] = []

        def is_known() -> bool:
            with contextlib.suppress(KafkaError):
                created.append(Topic(name, admin.describe_topics([name])[name].topic_id))
            return bool(created)

        system.wait_until(is_known, f"{name} is there")
    return created[0]


def commit_once(system: FaultyCluster, group: str, places: list[TopicPartition]) -> None:
    """A group that has committed offsets and has no members."""
    reader = library("ours").reader(system.bootstrap, "once", Group(group))
    reader.commit(dict.fromkeys(places, 5))
    assert set(reader.committed(places).values()) == {5}
    reader.close()


def committed(system: FaultyCluster, group: str, places: list[TopicPartition]) -> set[int | None]:
    reader = library("ours").reader(system.bootstrap, "once", Group(group))
    try:
        return set(reader.committed(places).values())
    finally:
        reader.close()


# ---- requests with the id of a topic


def fetched_by_id(client: RawClient, topic: Topic) -> int:
    answer = client.call(FETCH, FETCH_BY_ID, fetch_request(topic))
    return int(answer.error_code or answer.responses[0].partitions[0].error_code)


def produced_by_id(client: RawClient, topic: Topic) -> int:
    answer = client.call(PRODUCE, PRODUCE_BY_ID, produce_request(topic, batch_of(b"1")))
    return int(answer.responses[0].partition_responses[0].error_code)


def described_by_id(client: RawClient, topic: Topic) -> int:
    asked = MetadataRequestTopic(topic_id=topic.id, name=None)
    return int(client.call(METADATA, METADATA_BY_ID, MetadataRequest(topics=[asked])).topics[0].error_code)


BY_ID: tuple[Callable[[RawClient, Topic], int], ...] = (fetched_by_id, produced_by_id, described_by_id)


class Session:
    """An incremental fetch session that has the topic, by its id."""

    def __init__(self, client: RawClient, topic: Topic) -> None:
        self._client = client
        request = fetch_request(topic)
        request.session_epoch = 0
        answer = client.call(FETCH, FETCH_BY_ID, request)
        assert answer.session_id > 0 and not answer.responses[0].partitions[0].error_code
        self._id, self._epoch = answer.session_id, 0

    def next(self) -> list[Any]:
        """The partitions of the next answer."""
        self._epoch += 1
        request = fetch_request(Topic("", bytes(16)))
        request.topics, request.session_id, request.session_epoch = [], self._id, self._epoch
        answer = self._client.call(FETCH, FETCH_BY_ID, request)
        assert answer.error_code == 0
        return [partition for topic in answer.responses for partition in topic.partitions]


def check_refused(system: FaultyCluster, old: Topic) -> None:
    """By all brokers."""
    for broker in system.brokers.values():
        if broker.is_running:
            with RawClient("127.0.0.1", broker.port) as client:
                for ask in BY_ID:
                    system.wait_until(
                        lambda ask=ask, client=client: ask(client, old) in REFUSED,  # type: ignore[misc]
                        f"{ask.__name__} is refused",
                    )


def test_a_topic_is_deleted_and_made_again(system: FaultyCluster, run: Run) -> None:
    use_transactions(system)
    with run() as stage:
        name = f"{stage.name}-again"
        old = make(system, name)
        places = [TopicPartition(name, number) for number in range(PARTITIONS)]
        system.wait_until_in_sync(name)
        commit_once(system, f"{name}-once", places)
        clients = Clients(system.bootstrap, places)
        try:
            clients.wait_for_progress(system, 0, OLD_RECORDS_MIN, "do something")
            with leader_client(system, name) as client:
                session = Session(client, old)
                new, deleted_at, made_at = replaced(system, stage, old)
                assert new.id != old.id
                check_session(system, session)
            check_refused(system, old)
            assert committed(system, f"{name}-once", places) == {None}
            settled_at = made_at + SETTLE_SECONDS
            stage.run(max(0.0, settled_at - time.monotonic()) + 1.0)
            clients.wait_for_progress(system, settled_at, 5, "use the new topic")
        finally:
            clients.stop()
        system.wait_until_in_sync(name)
        check_clients(system, clients, places, (deleted_at, settled_at))
        check_files(system, new, places)


def replaced(system: FaultyCluster, stage: Stage, old: Topic) -> tuple[Topic, float, float]:
    """The new topic, and when the old one was deleted and the new one was there. A broker may be away then;
    it comes back with the files of the old topic."""
    chance = Random(f"replaced-{stage.seed}")
    with contextlib.ExitStack() as faults:
        # One that was stopped cleanly gets no replica of a new topic, as with Kafka.
        if chance.random() < 0.6:
            faults.enter_context(stage.fault(Killed(system, Brokers(chance.choice(list(system.brokers))))))
        deleted_at = time.monotonic()
        with system.admin() as admin:
            admin.delete_topics([old.name])
        stage.note(f"{old.name} is deleted")
        stage.run(chance.choice([0.0, 0.0, chance.uniform(0.1, 2.0)]))
        new = make(system, old.name)
        made_at = time.monotonic()
        stage.note(f"{old.name} is made again")
    system.wait_until_in_sync(old.name)
    return new, deleted_at, made_at


def check_session(system: FaultyCluster, session: Session) -> None:
    """If its broker is still there: it gets no records, and is told."""
    with contextlib.suppress(OSError):
        codes: set[int] = set()

        def is_refused() -> bool:
            codes.update(each.error_code for each in session.next())
            return bool(codes & REFUSED)

        system.wait_until(is_refused, "the fetch session is told")
        assert all(not each.records for each in session.next())


def check_clients(
    system: FaultyCluster,
    clients: Clients,
    places: list[TopicPartition],
    moments: tuple[float, float],
) -> None:
    deleted_at, settled_at = moments
    there = {
        (place, offset): int(value.split(b" ")[0])
        for place in places
        for offset, value in enumerate(values_of("barnabas", system.bootstrap, *place))
    }
    values = set(there.values())
    for writer in clients.writers:
        old = [each for each in writer.seen if each.ended < deleted_at]
        assert old and not values & {each.value for each in old}, "the new topic has records of the old one"
        for each in writer.since(settled_at):
            assert there.get((each.place, each.offset)) == each.value, "an acknowledged record is not there"
    for reader in clients.readers:
        for each in reader.since(settled_at):
            assert there.get((each.place, each.offset)) == each.value, "a record of the old topic was read"
    begun = {each.place for each in clients.own_reader.since(deleted_at) if each.offset == 0}
    assert begun == set(places), "our consumer has not read the new topic from its beginning"


def check_files(system: FaultyCluster, new: Topic, places: list[TopicPartition]) -> None:
    directories = {id_: broker.data_dir for id_, broker in system.brokers.items()}
    ends = {place: end_of(system.bootstrap, *place) for place in places}
    assert not list(end_state.check_replicas(directories, ends))
    ids = {
        (directory / str(place) / "partition.metadata").read_text().split("topic_id: ")[1].strip()
        for directory in directories.values()
        for place in places
    }
    assert len(ids) == 1
