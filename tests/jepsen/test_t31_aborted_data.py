"""Many aborted transactions between committed ones, restarts and compaction: consumers of committed records
see no aborted one, the lists of aborted transactions are right after each restart, and compaction keeps
tombstones and markers as long as it must."""

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from tests.faults.transaction_stage import fetched
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import ALLOWANCE
from tests.jepsen.faults import Brokers, Fault, Killed, Stopped
from tests.jepsen.plans import Load
from tests.jepsen.probes import leader_client
from tests.jepsen.stage import Settings, Stage
from tests.jepsen.transactions import batches, committed_values, places_of, wait_until_decided
from tests.support.raw_calls import Topic

import barnabas
from barnabas.client.admin import ElectionType, NewTopic
from barnabas.ids import TopicPartition
from barnabas.log.open_files import DESCRIPTORS_MOST
from barnabas.records.batch import iter_headers
from barnabas.records.builder import read_records

pytestmark = pytest.mark.faults

PARTITIONS = 2
WRITERS = 3
TRANSACTIONS = 90
COMMITTED_SHARE = 0.4
SMALL = {"internal.segment.bytes": "4000"}
# A segment that was read may keep its files open; brokers limit their number.
# Brokers grow by about 30 MB with their first compactions, and stay there in the next round. What takes it is
# not known.
COMPACTING = Settings(allowance=replace(ALLOWANCE, resident_bytes=48 << 20))
MANY_SEGMENTS = Settings(topic_configs=SMALL, allowance=replace(ALLOWANCE, files=DESCRIPTORS_MOST))
LOAD = Load(writers=1, pipelining_writers=1, transactional_writers=4, readers=2, modern_groups=0)


@pytest.fixture(scope="module")
def shape() -> dict[str, object]:
    return {"overrides": {"log.cleaner.backoff.ms": "100"}}


def make_topic(stage: Stage, name: str, configs: Mapping[str, str]) -> list[TopicPartition]:
    topic = f"{stage.name}-{name}"
    with stage.system.admin() as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 3, configs)])
    stage.system.wait_until_in_sync(topic)
    return places_of(topic, PARTITIONS)


def make_writers(stage: Stage, name: str) -> list[barnabas.Producer]:
    writers = [
        barnabas.Producer(
            {"bootstrap.servers": stage.system.bootstrap, "transactional.id": f"{stage.name}-{name}-{number}"}
        )
        for number in range(WRITERS)
    ]
    for writer in writers:
        writer.init_transactions()
    return writers


class Written(NamedTuple):
    place: TopicPartition
    offset: int
    value: bytes


class Interleaved:
    """Transactions of several writers that overlap, most of which are aborted."""

    def __init__(self, stage: Stage, places: list[TopicPartition]) -> None:
        self._chance = Random(stage.seed)
        self._places = places
        self._numbers = itertools.count()
        self._open: dict[barnabas.Producer, list[Written]] = {}
        self.committed: list[Written] = []
        # The first record of each transaction in each partition.
        self.aborted: list[Written] = []
        writers = make_writers(stage, "interleaved")
        ended = 0
        while ended < TRANSACTIONS:
            writer = self._chance.choice(writers)
            if writer in self._open and self._chance.random() < 0.5:
                self._end(writer)
                ended += 1
            else:
                self._write(writer)
        for writer in writers:
            if writer in self._open:
                self._end(writer)
            writer.close()

    def _write(self, writer: barnabas.Producer) -> None:
        if writer not in self._open:
            writer.begin_transaction()
            self._open[writer] = []
        place, value = self._chance.choice(self._places), b"%d" % next(self._numbers)
        written = writer.send(place.topic, value, partition=place.partition).result(30)
        self._open[writer].append(Written(place, written.offset, value))

    def _end(self, writer: barnabas.Producer) -> None:
        records = self._open.pop(writer)
        if self._chance.random() < COMMITTED_SHARE:
            writer.commit_transaction()
            self.committed += records
        else:
            writer.abort_transaction()
            self.aborted += {each.place: each for each in reversed(records)}.values()

    def check(self, system: FaultyCluster) -> None:
        """What the leaders say about all partitions."""
        values = committed_values(system, self._places)
        for place in self._places:
            mine = sorted((each.offset, each.value) for each in self.committed if each.place == place)
            assert values[place] == [value for _, value in mine]
            self._check_aborted(system, place)

    def _check_aborted(self, system: FaultyCluster, place: TopicPartition) -> None:
        """A fetch lists the aborted transactions with records in its answer, and none that ends before."""
        headers = batches(system, place)
        producers = {header.base_offset: header.producer_id for header in headers}
        expected = []
        for each in (each for each in self.aborted if each.place == place):
            producer_id = producers[each.offset]
            end = min(
                header.base_offset
                for header in headers
                if header.is_control
                and header.producer_id == producer_id
                and header.base_offset > each.offset
            )
            expected.append((producer_id, each.offset, end))
        with leader_client(system, *place) as client:
            for offset in range(0, headers[-1].next_offset, 11):
                answer = fetched(client, Topic(place.topic, bytes(16)), place.partition, offset)
                listed = {(each.producer_id, each.first_offset) for each in answer.aborted_transactions}
                # An answer ends with a segment.
                upper = [header.next_offset for _, header in iter_headers(answer.records)][-1]
                later = {(id_, first) for id_, first, end in expected if end >= offset}
                assert {(id_, first) for id_, first in later if first < upper} <= listed <= later


def test_aborted_transactions_are_known_after_restarts(system: FaultyCluster, run: Run) -> None:
    with run(LOAD, MANY_SEGMENTS) as stage:
        chance = Random(stage.seed)
        places = make_topic(stage, "interleaved", SMALL)
        interleaved = Interleaved(stage, places)
        wait_until_decided(system, places)
        interleaved.check(system)
        for broker_id in chance.sample(list(system.brokers), 2):
            fault: Fault = chance.choice([Killed, Stopped])(system, Brokers(broker_id))
            with stage.fault(fault):
                if chance.random() < 0.5:
                    stage.wait_until_writable("writable without the broker")
            stage.wait_until_in_sync()
            system.wait_until_in_sync(places[0].topic)
            with system.admin() as admin:
                admin.elect_leaders(ElectionType.PREFERRED)
            interleaved.check(system)


# ---- compaction

KEYS = 6
DELETED_KEYS = (0, 1)
FILLER = b"filler"
HOUR_MS = 3_600_000
COMPACTED = {
    **SMALL,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "500",
}


class Stored(NamedTuple):
    """A record in the files of a replica."""

    key: bytes | None
    value: bytes | None


class Marker(NamedTuple):
    """A marker in the files of a replica, and whether a batch of its transaction is there, too."""

    producer_id: int
    has_data: bool


class Contents(NamedTuple):
    records: list[Stored]
    markers: list[Marker]


def stored(directory: Path) -> Contents:
    """All but the last segment. Compaction may replace files meanwhile: then read all of them again."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            return _stored(directory)


def _stored(directory: Path) -> Contents:
    found = Contents([], [])
    with_data = set()
    for path in sorted(directory.glob("*.log"))[:-1]:
        data = path.read_bytes()
        for at, header in iter_headers(data):
            if not header.is_control:
                with_data.add(header.producer_id)
                records = read_records(data[at : at + header.size])
                found.records.extend(Stored(each.key, each.value) for each in records)
            elif header.count:
                found.markers.append(Marker(header.producer_id, header.producer_id in with_data))
                with_data.discard(header.producer_id)
    return found


def removed_files(system: FaultyCluster) -> list[str]:
    """Files that brokers have open and that are removed, or will be soon."""
    found = []
    for broker in system.brokers.values():
        for path in Path(f"/proc/{broker.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(str(path.readlink()))
    return [each for each in found if each.startswith("/") and "deleted" in each]


class Compacted:
    """Keys with committed and aborted values, and a tombstone for some."""

    def __init__(self, stage: Stage, name: str, delete_retention_ms: int) -> None:
        configs = {**COMPACTED, "delete.retention.ms": str(delete_retention_ms)}
        self._system = stage.system
        self.places = make_topic(stage, name, configs)
        self.latest: dict[bytes, bytes | None] = {}
        chance = Random(stage.seed)
        self._writers = make_writers(stage, name)
        for number in range(60):
            self._write(
                chance.choice(self._writers), chance.randrange(KEYS), b"%d" % number, chance.random() < 0.5
            )
        for key in DELETED_KEYS:
            self._write(self._writers[0], key, None, True)
            # An aborted value does not bring the key back.
            self._write(self._writers[1], key, b"aborted after the tombstone", False)

    def _write(self, writer: barnabas.Producer, number: int, value: bytes | None, commits: bool) -> None:
        place, key = self.places[number % PARTITIONS], b"key %d" % number
        stored_value = None if value is None else value + (b" committed" if commits else b" aborted")
        writer.begin_transaction()
        writer.send(place.topic, stored_value, key=key, partition=place.partition).result(30)
        if commits:
            writer.commit_transaction()
            self.latest[key] = stored_value
        else:
            writer.abort_transaction()

    def roll(self) -> None:
        """Records that move the others out of the last segment. Compaction would keep an empty batch of each
        idempotent producer."""
        configs = {"bootstrap.servers": self._system.bootstrap, "enable.idempotence": False}
        with barnabas.Producer(configs) as producer:
            for place in self.places:
                producer.send(place.topic, b"." * 3000, key=FILLER, partition=place.partition).result(30)

    def replicas(self) -> Iterator[Contents]:
        for broker in self._system.brokers.values():
            for place in self.places:
                yield stored(broker.data_dir / str(place))

    def is_clean(self) -> bool:
        """On all replicas, each key is there at most once, and nothing of aborted transactions."""
        self.roll()
        for records, markers in self.replicas():
            keys = [each.key for each in records if each.key != FILLER]
            is_empty = not records and not markers
            if is_empty or len(set(keys)) < len(keys):
                return False
            if any(each.value is not None and each.value.endswith(b"aborted") for each in records):
                return False
        return True

    def tombstones(self) -> set[bytes | None]:
        """Those that all replicas have."""
        kept: dict[bytes | None, int] = defaultdict(int)
        for records, _ in self.replicas():
            for each in records:
                if each.value is None:
                    kept[each.key] += 1
        return {key for key, many in kept.items() if many == len(self._system.brokers)}

    def old_markers(self) -> list[int]:
        """How many markers each replica has without data of their transactions, and with a later marker of
        the same producer: the last one has the producer's epoch, and stays."""
        counts = []
        for _, markers in self.replicas():
            last = {each.producer_id: place for place, each in enumerate(markers)}
            counts.append(
                sum(
                    not each.has_data and place < last[each.producer_id] for place, each in enumerate(markers)
                )
            )
        return counts

    def check_readers(self) -> None:
        """The last committed value of each key."""
        values = committed_values(self._system, self.places)
        found = {value for each in values.values() for value in each if value and not value.startswith(b".")}
        assert found == {value for value in self.latest.values() if value is not None}

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


def test_compaction_keeps_what_it_must(system: FaultyCluster, run: Run) -> None:
    with run(LOAD, COMPACTING) as stage:
        chance = Random(stage.seed)
        keeping = Compacted(stage, "keeping", HOUR_MS)
        dropping = Compacted(stage, "dropping", 100)
        deleted = {b"key %d" % number for number in DELETED_KEYS}
        system.wait_until(lambda: keeping.is_clean() and dropping.is_clean(), "both topics are compacted")
        assert keeping.tombstones() == deleted
        # Consumers that are in the middle of the log need the markers until delete.retention.ms has passed.
        assert min(keeping.old_markers()) > 0
        system.wait_until(
            lambda: dropping.is_clean() and not dropping.tombstones() and not any(dropping.old_markers()),
            "tombstones and markers are removed after delete.retention.ms",
        )
        for topic in (keeping, dropping):
            topic.check_readers()
        with stage.fault(
            chance.choice([Killed, Stopped])(system, Brokers(chance.choice(list(system.brokers))))
        ):
            pass
        stage.wait_until_in_sync()
        for topic in (keeping, dropping):
            topic.check_readers()
            topic.close()
        assert keeping.tombstones() == deleted
        system.wait_until(lambda: not removed_files(system), "no file of a removed segment is open")
