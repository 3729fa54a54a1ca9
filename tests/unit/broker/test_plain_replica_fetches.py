"""The short way of a follower's fetches gives the answers of the ordinary way, and leaves the same behind."""

import asyncio
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.broker.conftest import BROKER_ID, Stage

from barnabas.broker.apis import ROWS
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.fetch_sessions import FetchSession, FetchSessions
from barnabas.broker.plain_replica_fetches import PlainFetch, PlainReplicaFetches
from barnabas.broker.session import Session
from barnabas.log.reading import LogSlice
from barnabas.metadata.records import BrokerRecord
from barnabas.records.builder import build_batch
from barnabas.records.validation import validate
from barnabas.replication.partition import Partition
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

FOLLOWER, FOLLOWER_EPOCH = 2, 12
PARTITIONS = 3
FETCH, VERSION = 1, 17
# Nothing times out by itself.
WAIT_MS = 3_600_000


class Connection:
    """What the dispatcher uses of a connection."""

    peer_host = "127.0.0.1"

    def __init__(self) -> None:
        self.replies: list[bytes] = []
        self.when_abandoned: Callable[[], object] | None = None
        self.is_closed = False

    def reply(self, chunks: list[Any]) -> None:
        self.when_abandoned = None
        self.replies.append(b"".join(_bytes(chunk) for chunk in chunks))

    def close(self) -> None:
        self.is_closed = True


def _bytes(chunk: Any) -> bytes:
    if not isinstance(chunk, LogSlice):
        return bytes(chunk)
    assert chunk.file is not None
    try:
        return os.pread(chunk.file.fileno(), chunk.size, chunk.position)
    finally:
        chunk.release()


class Fetched(NamedTuple):
    """Ask for partitions, given by how far the follower has come in each of them."""

    named: dict[int, int]
    connection: int = 0


class Appended(NamedTuple):
    partition: int


class Waited(NamedTuple):
    milliseconds: int


class Elected(NamedTuple):
    """The partition gets a new leader epoch, and its follower knows."""

    partition: int


Step = Fetched | Appended | Waited | Elected


class Leader:
    """A broker that leads three partitions with one follower, which sends frames to it."""

    def __init__(self, directory: Path) -> None:
        self.stage = Stage(directory, {})
        stage: Any = self.stage
        stage.create("topic", partitions=PARTITIONS)
        old = stage.image
        stage.write(BrokerRecord(FOLLOWER, FOLLOWER_EPOCH, b"i" * 16, (), fenced=False))
        stage.replicas.follow(stage.image, stage.image.difference(old))
        stage.replicas.surroundings.clock = stage.clock
        stage.fetch_sessions = FetchSessions(stage.clock, 10, 120.0)
        self.dispatcher = Dispatcher(stage, ROWS)
        self.connections = [Connection(), Connection()]
        self.epochs = [0] * PARTITIONS
        for index in range(PARTITIONS):
            self._place(index)
        self.correlation_id = 0

    def _place(self, index: int) -> None:
        both = (BROKER_ID, FOLLOWER)
        epoch = self.epochs[index]
        self.stage.place(
            self.partition(index), replicas=both, isr=both, leader_epoch=epoch, partition_epoch=epoch
        )

    def partition(self, index: int) -> Partition:
        return self.stage.replicas.leader("topic", index)

    @property
    def session(self) -> FetchSession | None:
        sessions: FetchSessions = self.stage.fetch_sessions  # type: ignore[attr-defined]
        return next(iter(sessions._sessions.values()), None)

    async def take(self, step: Step) -> None:
        match step:
            case Fetched(named, connection):
                self._fetch(named, self.connections[connection])
            case Appended(index):
                partition, now_ms = self.partition(index), self.stage.clock.now_ms()
                batch = build_batch([(now_ms, b"key", b"value", [])])
                partition.append(validate(memoryview(batch), partition.rules, now_ms))
            case Waited(milliseconds):
                self.stage.clock.advance(milliseconds)
            case Elected(index):
                self.epochs[index] += 1
                self._place(index)
        await asyncio.sleep(0)

    def _fetch(self, named: dict[int, int], connection: Connection) -> None:
        if connection.when_abandoned is not None:
            # A connection has one request at a time.
            return
        self.correlation_id += 1
        session = self.session
        parts = [self._part(index, came) for index, came in named.items()]
        if session is None:
            parts = [self._part(index, 0) for index in range(PARTITIONS)]
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH),
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=0 if session is None else session.id,
            session_epoch=0 if session is None else session.epoch,
            topics=[FetchTopic(topic_id=self.partition(0).topic_id, partitions=parts)] if parts else [],
        )
        chunks = encode_request(RequestHeader(FETCH, VERSION, self.correlation_id, "broker-2"), request)
        frame = b"".join(bytes(chunk) for chunk in chunks)[4:]  # type: ignore[arg-type]
        connection.session = Session(self.stage.config.listeners[0], "")
        self.dispatcher.serve(connection, memoryview(bytearray(frame)))  # type: ignore[arg-type]

    def _part(self, index: int, came: int) -> FetchPartition:
        """The follower has come so far, but not farther than the leader's log."""
        log = self.partition(index).log
        offset = min(came, log.log_end_offset)
        epoch = log.leader_epochs.latest if offset else -1
        return FetchPartition(
            partition=index,
            current_leader_epoch=self.epochs[index],
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )

    def outcome(self) -> Any:
        """All that can be seen from outside, and what the session and the leader remember."""
        followers = [self.partition(index).leading.followers[FOLLOWER] for index in range(PARTITIONS)]  # type: ignore[union-attr]
        session = self.session
        remembered = () if session is None else session.partitions.values()
        topic_id = self.partition(0).topic_id
        return (
            [[reply.replace(topic_id, bytes(16)) for reply in each.replies] for each in self.connections],
            [connection.is_closed for connection in self.connections],
            [self.partition(index).high_watermark for index in range(PARTITIONS)],
            [(state.end_offset, state.caught_up_at, state.repeats) for state in followers],
            None if session is None else session.epoch,
            sorted(
                (each.index, each.fetch_offset, each.last_sent_high_watermark, each.last_sent_log_start)
                for each in remembered
            ),
        )


def played(steps: list[Step], *, is_short: bool) -> tuple[Any, int]:
    """The outcome, and how many fetches took the short way."""
    taken = 0
    serve = PlainReplicaFetches.serve

    def counted(self: PlainReplicaFetches, *arguments: Any) -> bool:
        nonlocal taken
        is_taken = is_short and serve(self, *arguments)
        taken += is_taken
        return is_taken

    with TemporaryDirectory() as directory, mock.patch.object(PlainReplicaFetches, "serve", counted):
        leader = Leader(Path(directory))
        numbers = count(1)

        async def play() -> None:
            for step in steps:
                await leader.take(step)

        try:
            with mock.patch.object(FetchSessions, "_fresh_id", lambda _: next(numbers)):
                leader.stage.run(play())
            return leader.outcome(), taken
        finally:
            leader.stage.close()


INDEXES = st.integers(0, PARTITIONS - 1)
STEPS = st.one_of(
    st.builds(Fetched, st.dictionaries(INDEXES, st.integers(0, 6), max_size=2), st.integers(0, 1)),
    st.builds(Fetched, st.dictionaries(st.just(0), st.integers(0, 6), min_size=1), st.just(0)),
    st.builds(Appended, INDEXES),
    st.builds(Appended, st.just(0)),
    st.builds(Waited, st.sampled_from([1, 600])),
    st.builds(Elected, INDEXES),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=14))
@example([Fetched({}), Fetched({}), Appended(0), Fetched({0: 1}), Appended(0), Fetched({0: 2})])
@example([Fetched({}), Waited(1), Fetched({}), Fetched({}, 1), Appended(1), Appended(0), Fetched({0: 1})])
@example([Fetched({}), Fetched({}), Elected(0), Appended(0), Fetched({0: 0}), Fetched({0: 1})])
@example([Appended(0), Fetched({}), Fetched({0: 1}), Appended(0), Fetched({}), Fetched({})])
def test_both_ways_do_the_same(steps: list[Step]) -> None:
    assert played(steps, is_short=True)[0] == played(steps, is_short=False)[0]


def test_the_short_way_is_taken_while_one_partition_is_written_to() -> None:
    steps: list[Step] = [Fetched({}), Fetched({}), Appended(0)]
    for come in range(1, 6):
        steps += [Fetched({0: come}), Appended(0)]
    outcome, taken = played(steps, is_short=True)
    # The first one begins the session, the second one looks at all partitions.
    assert taken == 5
    assert outcome[2][0] == 5


def test_a_fetch_on_another_connection_ends_the_one_that_waits() -> None:
    outcome, _ = played([Fetched({}), Fetched({}), Fetched({}, 1), Appended(0)], is_short=True)
    first, second = outcome[0]
    # The first connection: the answer that began the session, and an answer with nothing.
    assert [len(_topics(reply)) for reply in first] == [1, 0]
    assert [len(_topics(reply)) for reply in second] == [1]


def _topics(reply: bytes) -> list[Any]:
    topics: list[Any] = decode_response(FETCH, VERSION, reply[4:])[1].responses
    return topics


@pytest.fixture
def broken() -> Iterator[None]:
    with mock.patch.object(PlainFetch, "_answer", side_effect=RuntimeError("a defect")):
        yield


def test_a_defect_closes_the_connection_of_the_follower_and_not_the_append(broken: None) -> None:
    steps: list[Step] = [Fetched({}), Appended(0), Fetched({}), Fetched({0: 1}), Appended(0)]
    outcome, taken = played(steps, is_short=True)
    assert taken == 1
    assert outcome[1] == [True, False]
