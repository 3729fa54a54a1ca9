"""Machines lose power, and with it what was not synced. If it is one machine, nothing is lost. If it is all
of them, only the end of each log is lost that the flush policy had not synced (docs/durability.md). What is
left keeps its offsets, and a consumer that has read more is told."""

import contextlib
import threading
import time
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest
from tests.cluster.reading import end_of, values_of
from tests.jepsen import end_state
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import All, Controller, Followers, Leader, PowerLost, Role

import barnabas
from barnabas.client.admin import AlterConfigOp, ConfigOperation, ConfigResource, ConfigResourceType
from barnabas.client.errors import KafkaError, LogTruncationError, OffsetOutOfRangeError
from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

PARTITIONS = 3
FLUSH_SECONDS = 1.0
# The broker looks once per second whether a flush is due, and a busy machine is late.
FLUSH_SLACK_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
EVERY_RECORD = AlterConfigOp("log.flush.interval.messages", "1")
DEFAULT = AlterConfigOp("log.flush.interval.messages", None, ConfigOperation.DELETE)


@pytest.fixture(scope="module")
def shape() -> dict[str, object]:
    return {"tracks_syncs": True}


def test_one_broker_loses_power(run: Run) -> None:
    with run() as stage:
        chance = Random(stage.seed)
        roles: list[Role] = [Leader(stage.topic, chance.randrange(PARTITIONS)), Controller()]
        role = chance.choice([*roles, Followers(stage.topic, count=1)])
        # Without a chance, everything that was not synced is lost; with it, a part.
        fault = PowerLost(stage.system, role, chance.choice([None, chance]))
        stage.run(chance.uniform(1.0, 3.0))
        with stage.fault(fault):
            (loss,) = fault.losses.values()
            stage.note(f"{sum(loss.bytes_lost.values())} bytes are lost")
            assert any(path.parent.name.startswith(stage.topic) for path in loss.bytes_lost)
            # Otherwise it is back before its session ends, and others may believe that it has everything.
            if chance.random() < 0.5:
                stage.wait_until_writable("writable after the power failure")
                stage.wait_for_progress(1)
        stage.run(1.0)


@contextlib.contextmanager
def every_record_synced(system: FaultyCluster) -> Iterator[None]:
    """Also those of the internal topics."""
    brokers = ConfigResource(ConfigResourceType.BROKER, "")
    with system.admin() as admin:
        admin.incremental_alter_configs({brokers: [EVERY_RECORD]})
    yield
    with system.admin() as admin:
        admin.incremental_alter_configs({brokers: [DEFAULT]})


def test_all_brokers_lose_power_after_every_record_was_synced(system: FaultyCluster, run: Run) -> None:
    with every_record_synced(system), run() as stage:
        chance = Random(stage.seed)
        stage.run(chance.uniform(0.5, 2.0))
        with stage.fault(PowerLost(stage.system, All(), chance.choice([None, chance]))):
            pass
        stage.run(1.0)


# ---- without a sync of every record


class Acknowledged(NamedTuple):
    place: TopicPartition
    offset: int
    value: bytes
    at: float


class Writer:
    """Writes to the partitions in turn until it fails; `acknowledged` is what the cluster has promised."""

    def __init__(self, bootstrap: str, places: list[TopicPartition]) -> None:
        self._bootstrap = bootstrap
        self._places = places
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: list[Acknowledged] = []
        self._thread.start()

    def _run(self) -> None:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "acks": "all",
            "request.timeout.ms": 1000,
            "delivery.timeout.ms": 2000,
        }
        with contextlib.suppress(KafkaError), barnabas.Producer(settings) as producer:
            for number in range(1_000_000):
                place = self._places[number % len(self._places)]
                value = b"%d" % number
                written = producer.send(place.topic, value, partition=place.partition).result(10)
                self.acknowledged.append(Acknowledged(place, written.offset, value, time.monotonic()))

    def wait_until_failed(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the writer goes on without brokers"


@pytest.mark.parametrize("policy", ["flush.ms", "none"])
def test_all_brokers_lose_power(system: FaultyCluster, make_topic: MakeTopic, seed: int, policy: str) -> None:
    chance = Random(seed)
    configs = {"flush.ms": str(int(FLUSH_SECONDS * 1000))} if policy == "flush.ms" else {}
    topic = make_topic(PARTITIONS, configs=configs)
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    settings = {"bootstrap.servers": system.bootstrap, "auto.offset.reset": "none"}
    with barnabas.Consumer(settings) as consumer:
        consumer.assign(places)
        for place in places:
            consumer.seek(place, 0)
        writer = Writer(system.bootstrap, places)
        read = read_for(consumer, chance.uniform(3.0, 5.0))
        with PowerLost(system, All(), chance if policy == "none" else None):
            failed_at = time.monotonic()
            writer.wait_until_failed()
        system.wait_until_in_sync(topic)
        ends = {place: end_of(system.bootstrap, *place) for place in places}
        lost = [each for each in writer.acknowledged if each.offset >= ends[each.place]]
        print(f"{topic}: {len(writer.acknowledged)} acknowledged, {len(lost)} lost")
        assert writer.acknowledged and (lost or policy == "none")
        check_left(system, writer.acknowledged, ends)
        if policy == "flush.ms":
            oldest = min(each.at for each in lost)
            assert failed_at - oldest <= FLUSH_SECONDS + FLUSH_SLACK_SECONDS
        write_more(system, ends, len(writer.acknowledged))
        check_consumer_notices(consumer, {place: end for place, end in ends.items() if read[place] > end})
    ends = {place: end_of(system.bootstrap, *place) for place in places}
    directories = {id_: broker.data_dir for id_, broker in system.brokers.items()}
    assert not list(end_state.check_replicas(directories, ends))


def read_for(consumer: barnabas.Consumer, seconds: float) -> dict[TopicPartition, int]:
    """Read for so long; where the consumer is then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        consumer.poll(0.1)
    return {place: consumer.position(place) for place in consumer.assignment()}


def check_left(
    system: FaultyCluster, acknowledged: list[Acknowledged], ends: dict[TopicPartition, int]
) -> None:
    """What is left is at its old offset, and nothing is missing before it."""
    values = {place: values_of("barnabas", system.bootstrap, *place) for place in ends}
    for place, end in ends.items():
        assert len(values[place]) == end
    for place, offset, value, _ in acknowledged:
        if offset < ends[place]:
            assert values[place][offset] == value, f"{place} has another record at offset {offset}"


def write_more(system: FaultyCluster, ends: dict[TopicPartition, int], count: int) -> None:
    """More records than were lost, from the end of each log on."""
    with barnabas.Producer({"bootstrap.servers": system.bootstrap, "acks": "all"}) as producer:
        for place, end in ends.items():
            sent = [producer.send(place.topic, b"new", partition=place.partition) for _ in range(count)]
            assert [each.result(PATIENCE_SECONDS).offset for each in sent] == list(range(end, end + count))


def check_consumer_notices(consumer: barnabas.Consumer, ends: dict[TopicPartition, int]) -> None:
    """A consumer that has read records that are lost is told for each partition, before it reads new ones."""
    told: set[TopicPartition] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while told != set(ends) and time.monotonic() < deadline:
        try:
            records = consumer.poll(0.5)
        except LogTruncationError as error:
            for place, offset in error.offsets.items():
                assert offset > ends[place]
                told.add(place)
                consumer.seek(place, ends[place])
        except OffsetOutOfRangeError as error:
            raise AssertionError(f"the consumer cannot know why: {error}") from error
        else:
            assert not set(records.partitions()) & (set(ends) - told), "nobody has told the consumer"
    assert told == set(ends)
