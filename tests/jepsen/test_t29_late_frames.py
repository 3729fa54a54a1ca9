"""Requests of a transaction are held back until another one has begun: they cannot end it, add a record to it
or leave one that nobody ends.

That is so for clients of transaction version 2 (KIP-890), which have an epoch for each transaction. A client
of version 1 keeps its epoch, so a late EndTxn ends its next transaction, as in Kafka: docs/durability.md."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.jepsen import transactions
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import HeldRequests, Killed, TransactionCoordinator
from tests.jepsen.network import END_TXN, PRODUCE, Which
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage
from tests.jepsen.transactions import RoutingClient
from tests.support.raw_calls import Topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import (
    COME_AGAIN,
    NEW,
    OLD,
    TXN_OFFSET_COMMIT,
    TXN_OFFSET_COMMIT_VERSIONS,
    RawTransactional,
)

from barnabas.errors import ErrorCode, error_of

pytestmark = pytest.mark.faults

# librdkafka is a client of version 1.
LOAD = Load(
    writers=1,
    pipelining_writers=1,
    transactional_writers=3,
    classic_groups=0,
    modern_groups=0,
    copiers=1,
    libraries=("ours",),
)
# Longer than the clients wait for an answer, shorter than the timeout of their transactions.
HELD_SECONDS = 4.0
HELD_REQUESTS = 6
PARTITIONS = 3
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
# New coordinators and leaders.
TRY_AGAIN = {*COME_AGAIN, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER}
LATE = "late"


class Scene:
    """A raw producer, its topic and its group."""

    def __init__(self, stage: Stage, system: FaultyCluster, topic: str, version: int) -> None:
        self.stage, self.system = stage, system
        self.topic = Topic(topic, bytes(16))
        self.places = transactions.places_of(topic, PARTITIONS)
        self.group = f"{stage.name}-{version}"
        self.cluster = RoutingClient(system, f"{stage.name}-{version}", self.group)
        self.producer = RawTransactional(self.cluster, f"{stage.name}-{version}", version)
        self.producer.init()
        self.offsets = RawGroup(self.cluster, self.group)

    def write(self, value: bytes, *partitions: int) -> None:
        for partition in partitions:
            if self.producer.transaction_version == OLD:
                assert self.producer.add(self.topic, partition) == 0
            assert self.producer.produce(self.topic, value, partition) == 0

    def late_produce(self, partition: int) -> "LateRequest":
        frame = self.producer.produce_frame(self.topic, b"late", partition)
        # It was not written, so the sequence number is used again.
        self.producer.sequences[self.topic.name, partition] -= 1
        return LateRequest(
            self,
            PRODUCE,
            self.producer.produce_version,
            frame,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )

    def late_end(self, commit: bool) -> "LateRequest":
        frame = self.producer.end_frame(commit)
        return LateRequest(self, END_TXN, self.producer.end_version, frame, lambda answer: answer.error_code)

    def late_offset(self, offset: int) -> "LateRequest":
        frame = self.producer.offset_frame(self.group, self.topic, offset)
        version = TXN_OFFSET_COMMIT_VERSIONS[self.producer.transaction_version]
        return LateRequest(
            self, TXN_OFFSET_COMMIT, version, frame, lambda answer: answer.topics[0].partitions[0].error_code
        )

    @property
    def state(self) -> str:
        return transactions.transaction_state(self.system, self.producer.name)

    def committed_offset(self) -> int:
        found: list[tuple[int, int]] = []

        def is_found() -> bool:
            found.append(self.offsets.committed(self.topic, require_stable=True))
            return found[-1][0] not in TRY_AGAIN

        self.system.wait_until(is_found, "the group has a coordinator")
        code, offset = found[-1]
        assert code != ErrorCode.UNSTABLE_OFFSET_COMMIT, "an offset is in a transaction that has not ended"
        assert code == 0, error_of(code)
        return offset

    def check_values(self, *expected: bytes) -> None:
        """Each partition has these values, and no open transaction."""
        transactions.wait_until_decided(self.system, self.places)
        values = transactions.committed_values(self.system, self.places)
        assert sorted(value for each in values.values() for value in each) == sorted(expected)
        with self.system.admin() as admin:
            states = admin.describe_producers(self.places)
        assert not [
            state
            for each in states.values()
            for state in each
            if state.producer_id == self.producer.id and state.current_transaction_start_offset >= 0
        ]


class LateRequest:
    """A request as it is now. A proxy holds it back until answered() is called."""

    def __init__(
        self, scene: Scene, api_key: int, version: int, message: Any, code: Callable[[Any], int]
    ) -> None:
        self._scene, self._message = scene, message
        self._api, self._code = (api_key, version), code
        self._client = self._connected()
        self._hold = scene.system.frames.hold(Which(api_key, LATE), count=1)
        self._client.send(*self._api, message)
        self._hold.wait()

    def _connected(self) -> RawClient:
        client = self._scene.cluster.connected(self._api[0], self._message)
        client.client_id = LATE
        return client

    def answered(self) -> int:
        self._hold.release()
        with self._client:
            return self._code(self._client.receive(*self._api)[1])

    def answered_again(self) -> int:
        """A copy of it, which comes later still, to brokers that may have just taken over."""
        code = -1

        def is_decided() -> bool:
            nonlocal code
            with self._connected() as client:
                code = self._code(client.call(*self._api, self._message))
            return code not in TRY_AGAIN

        self._scene.system.wait_until(is_decided, f"a late {self._message} is answered")
        return code


def test_clients_of_version_2(run: Run, system: FaultyCluster, make_topic: MakeTopic) -> None:
    with run(LOAD) as stage:
        chance = Random(stage.seed)
        scene = Scene(stage, system, make_topic(PARTITIONS), NEW)
        for api_key in chance.sample((END_TXN, PRODUCE), 2):
            with stage.fault(HeldRequests(system, Which(api_key), HELD_REQUESTS)):
                stage.run(HELD_SECONDS)
        check_version_2(scene, chance)


def check_version_2(scene: Scene, chance: Random) -> None:
    producer, commits = scene.producer, chance.random() < 0.5
    scene.write(b"first", 0, 1)
    assert producer.commit_offset(scene.group, scene.topic, 5) == 0
    late = [scene.late_produce(0), scene.late_produce(2), scene.late_offset(7)]
    late += [scene.late_end(commit) for commit in chance.sample((True, False), 2)]
    assert producer.end(commits) == 0
    transactions.wait_until_decided(scene.system, scene.places)
    # The second one is in the partitions of the late records, or in others.
    scene.write(b"second", *((0, 2) if chance.random() < 0.5 else (1,)))
    second = transactions.undecided(scene.system, scene.places)
    chance.shuffle(late)
    assert {each.answered() for each in late} <= FENCED
    assert scene.state == "Ongoing"
    assert transactions.undecided(scene.system, scene.places) == second
    with scene.stage.fault(Killed(scene.system, TransactionCoordinator(producer.name))):
        # The next coordinator knows the epoch, too.
        assert {each.answered_again() for each in late} <= FENCED
        assert scene.state == "Ongoing"
    assert producer.end(not commits) == 0
    scene.check_values(*([b"first"] * 2 if commits else [b"second"] * len(second)))
    assert scene.committed_offset() == (5 if commits else -1)
    assert {each.answered_again() for each in late} <= FENCED
    scene.check_values(*([b"first"] * 2 if commits else [b"second"] * len(second)))


def test_clients_of_version_1(run: Run, system: FaultyCluster, make_topic: MakeTopic) -> None:
    """A late record begins nothing. A late end is taken for that of the next transaction: this cannot be
    prevented for them. A client that does not know how a transaction has ended must take a new epoch."""
    with run(LOAD) as stage:
        scene = Scene(stage, system, make_topic(PARTITIONS), OLD)
        producer, chance = scene.producer, Random(stage.seed)
        scene.write(b"first", 0)
        late_records = [scene.late_produce(0), scene.late_produce(1)]
        late_end = scene.late_end(True)
        assert producer.end(False) == 0
        transactions.wait_until_decided(system, scene.places)
        chance.shuffle(late_records)
        assert {each.answered() for each in late_records} == {ErrorCode.TRANSACTION_ABORTABLE}
        scene.check_values()
        # The limit: nothing tells this end from one of the second transaction.
        scene.write(b"second", 0)
        assert late_end.answered() == 0
        scene.check_values(b"second")
        # The remedy.
        scene.write(b"third", 0)
        late = [scene.late_end(True), scene.late_produce(0), scene.late_produce(2)]
        producer.init()
        transactions.wait_until_decided(system, scene.places)
        scene.write(b"fourth", 0, 1)
        assert {each.answered() for each in late} <= FENCED
        assert scene.state == "Ongoing"
        assert producer.end(True) == 0
        scene.check_values(b"second", b"fourth", b"fourth")
