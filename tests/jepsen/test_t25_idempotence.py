"""Acknowledgements of an idempotent producer are lost, its batches overtake each other, leaders change and
brokers restart: no record is there twice, none is missing, and a repeat is answered with the first offset."""

import contextlib
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import Killed, Leader, LosingAnswers, Restarted, Stopped
from tests.jepsen.network import PRODUCE, Which
from tests.jepsen.plans import Load
from tests.jepsen.probes import client_of
from tests.jepsen.transactions import batches, ends
from tests.support.raw_calls import Topic, batch_of, produce_batch, produce_request
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import INIT_PRODUCER_ID

from barnabas.client.admin import AlterConfigOp, ConfigOperation, ConfigResource, ConfigResourceType
from barnabas.errors import ErrorCode, error_of
from barnabas.ids import TopicPartition
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

LOAD = Load(writers=2, pipelining_writers=4, transactional_writers=0, classic_groups=0, modern_groups=0)
IN_FLIGHT = 5
PER_BATCH = 3
LOST_ANSWERS = 30
PRODUCE_VERSION = 9
OUT_OF_ORDER = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
# What a producer repeats its request after, besides a connection that broke.
TRY_AGAIN = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
EXPIRATION = "producer.id.expiration.ms"
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


@pytest.fixture(scope="module")
def shape() -> dict[str, Any]:
    """Idle producers are looked for often, though none is idle for a day."""
    checks = ("log.retention.check.interval.ms", "producer.id.expiration.check.interval.ms")
    return {"overrides": dict.fromkeys(checks, "300")}


class Producer:
    """Sends batches with the sequence numbers 0, 3, 6 ... to one partition, in any order."""

    def __init__(self, system: FaultyCluster, topic: str, chance: Random) -> None:
        self.system = system
        self.topic = Topic(topic, bytes(16))
        self.place = TopicPartition(topic, 0)
        self.chance = chance
        self._batches: dict[int, bytes] = {}
        # The offset of each batch that was acknowledged, by its number.
        self.offsets: dict[int, int] = {}
        self.id = -1
        system.wait_until(self._has_id, "a producer id")

    def _has_id(self) -> bool:
        """Ask for an id; a broker that has just started may have none yet."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        with self.connected() as client:
            answer = client.call(INIT_PRODUCER_ID, 4, request)
        assert answer.error_code in (0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), answer
        self.id = answer.producer_id
        return self.id >= 0

    def connected(self) -> RawClient:
        (leader,) = Leader(self.topic.name).find(self.system)
        return client_of(self.system, leader)

    def batch(self, number: int) -> bytes:
        """The same bytes whenever it is sent."""
        if number not in self._batches:
            self._batches[number] = batch_of(
                *[b"%d" % (number * PER_BATCH + place) for place in range(PER_BATCH)],
                timestamp=time.time_ns() // 1_000_000,
                producer_id=self.id,
                producer_epoch=0,
                base_sequence=number * PER_BATCH,
            )
        return self._batches[number]

    def attempt(self, number: int) -> tuple[int, int]:
        """(error, offset)."""
        with self.connected() as client:
            answer = produce_batch(client, self.topic, self.batch(number), version=PRODUCE_VERSION)
        return answer.error_code, answer.base_offset

    def answer_to(self, number: int) -> tuple[int, int]:
        """(error, offset) of the leader, after retries that a change of the leader needs."""
        answers: list[tuple[int, int]] = []

        def is_answered() -> bool:
            with contextlib.suppress(ConnectionError, TimeoutError):
                answers.append(self.attempt(number))
            return bool(answers) and answers[-1][0] not in TRY_AGAIN

        self.system.wait_until(is_answered, f"the leader answers to batch {number}")
        return answers[-1]

    def send_without_waiting(self, numbers: list[int]) -> None:
        """Each on a connection of its own, so that they overtake each other; nobody reads the answers."""
        with contextlib.ExitStack() as connections:
            for number in numbers:
                client = connections.enter_context(self.connected())
                client.send(PRODUCE, PRODUCE_VERSION, produce_request(self.topic, self.batch(number)))

    def send_until_acknowledged(self, numbers: list[int]) -> None:
        """Repeat them in random order, as a network might."""
        left = list(numbers)

        def are_acknowledged() -> bool:
            self.chance.shuffle(left)
            for number in list(left):
                with contextlib.suppress(ConnectionError, TimeoutError):
                    self._take(number, *self.attempt(number))
                    if number in self.offsets:
                        left.remove(number)
            return not left

        self.system.wait_until(are_acknowledged, f"the batches {numbers} are acknowledged")

    def _take(self, number: int, code: int, offset: int) -> None:
        if code == ErrorCode.NONE:
            self.offsets[number] = offset
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            assert number > 0 and number - 1 not in self.offsets, "refused, though it was its turn"
        else:
            assert code in TRY_AGAIN, error_of(code)

    def next_numbers(self) -> list[int]:
        numbers = list(range(len(self.offsets), len(self.offsets) + IN_FLIGHT))
        self.chance.shuffle(numbers)
        return numbers

    # ---- what must hold

    def check(self) -> None:
        """Each batch is in the log once, in order; the last five are known, and the others not."""
        count = len(self.offsets)
        assert self.offsets == {number: number * PER_BATCH for number in range(count)}
        assert ends(self.system, [self.place])[self.place] == (count * PER_BATCH, count * PER_BATCH)
        recent = list(range(count - IN_FLIGHT, count))
        self.chance.shuffle(recent)
        for number in recent:
            assert self.answer_to(number) == (0, self.offsets[number]), f"repeat of batch {number} of {count}"
        assert self.answer_to(count + 1) == OUT_OF_ORDER, "a batch is missing before this one"
        if count > IN_FLIGHT:
            assert self.answer_to(count - IN_FLIGHT - 1) == OUT_OF_ORDER, "its offset is not known any more"
        sequences = [header.base_sequence for header in batches(self.system, self.place)]
        assert sequences == [number * PER_BATCH for number in range(count)]


def test_a_producer_whose_answers_are_lost(run: Run, system: FaultyCluster, make_topic: MakeTopic) -> None:
    with run(LOAD) as stage:
        chance = Random(stage.seed)
        producer = Producer(system, make_topic(), chance)
        # A producer that is new to a partition may begin with any sequence number.
        producer.send_until_acknowledged([0])
        with stage.fault(LosingAnswers(system, Which(PRODUCE), LOST_ANSWERS)):
            producer.send_until_acknowledged(producer.next_numbers())
            stage.run(1.0)
        producer.check()
        # The next five are under way when the leader changes; only some of them arrive in time.
        numbers = producer.next_numbers()
        change = (Killed, Stopped)[stage.seed % 2]
        producer.send_without_waiting(numbers[: chance.randint(1, IN_FLIGHT)])
        with stage.fault(change(system, Leader(producer.topic.name))):
            producer.send_until_acknowledged(numbers)
            producer.check()
        producer.send_without_waiting(numbers := producer.next_numbers())
        with stage.fault(Restarted(system, Leader(producer.topic.name), clean=change is Killed)):
            producer.send_until_acknowledged(numbers)
        producer.check()
    # Without the load: its producers must not be forgotten.
    check_idle(system, producer)


def check_idle(system: FaultyCluster, producer: Producer) -> None:
    """A producer that was idle for too long is unknown. As in Kafka, it may then go on with any sequence
    number (UNKNOWN_PRODUCER_ID is not answered any more), and the next one must follow that."""
    with forgetting_producers(system):
        system.wait_until(
            lambda: producer.id not in known_producers(system, producer.place), "it is forgotten"
        )
    first = len(producer.offsets) + producer.chance.randint(0, 3)
    end = len(producer.offsets) * PER_BATCH
    assert producer.answer_to(first) == (0, end)
    assert producer.answer_to(first + 2) == OUT_OF_ORDER
    assert producer.answer_to(first) == (0, end)
    assert producer.answer_to(first + 1) == (0, end + PER_BATCH)


@contextlib.contextmanager
def forgetting_producers(system: FaultyCluster) -> Iterator[None]:
    """A day is as short as two seconds."""
    with system.admin() as admin:
        admin.incremental_alter_configs({ALL_BROKERS: [AlterConfigOp(EXPIRATION, "2000")]})
        try:
            yield
        finally:
            undo = AlterConfigOp(EXPIRATION, operation=ConfigOperation.DELETE)
            admin.incremental_alter_configs({ALL_BROKERS: [undo]})


def known_producers(system: FaultyCluster, place: TopicPartition) -> set[int]:
    with system.admin() as admin:
        return {state.producer_id for state in admin.describe_producers([place])[place]}
