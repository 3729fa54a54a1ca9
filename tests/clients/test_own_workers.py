"""ConsumerWorkers and the examples of consuming with threads: order, commits, rebalances, kill -9."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.clients.conftest import MakeTopic

import barnabas
from barnabas import ConsumerWorkers
from barnabas.client.consumer import ConsumerRecord
from barnabas.client.errors import ConfigError

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PATIENCE_SECONDS = 60.0
PARTITIONS = 4
Place = tuple[int, int]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def fill(bootstrap: str, topic: str, count: int) -> set[Place]:
    """Send `count` records with 20 keys; returns their partitions and offsets."""
    with barnabas.Producer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        futures = [producer.send(topic, b"%d" % n, key=b"key-%d" % (n % 20)) for n in range(count)]
        return {(future.result(30).partition, future.result(30).offset) for future in futures}


def committed_of(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(group)
    return {each.partition: place.offset for each, place in offsets.items() if each.topic == topic and place}


def ends_of(places: set[Place]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for partition, offset in places:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends


class Seen:
    """What handlers have done, thread safe: the order in each lane, and whether two workers shared a lane."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: set[object] = set()
        self.places: list[Place] = []
        self.by_lane: dict[object, list[int]] = {}
        self.clashes = 0

    def begin(self, lane: object) -> None:
        with self._lock:
            self.clashes += lane in self._busy
            self._busy.add(lane)

    def end(self, lane: object, record: ConsumerRecord) -> None:
        with self._lock:
            self._busy.discard(lane)
            self.places.append((record.partition, record.offset))
            self.by_lane.setdefault(lane, []).append(record.offset)

    def __len__(self) -> int:
        return len(set(self.places))


@contextmanager
def running(workers: ConsumerWorkers, topic: str) -> Iterator[threading.Thread]:
    """Run the pool in its own thread, and stop it at the end."""
    workers.subscribe([topic])
    thread = threading.Thread(target=workers.run)
    thread.start()
    try:
        yield thread
    finally:
        workers.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def settings_of(bootstrap: str, topic: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": f"of-{topic}",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 100,
        **more,
    }


@pytest.mark.parametrize("order", ["key", "partition"])
def test_all_is_done_once_in_order_and_committed(
    quick_bootstrap: str, make_quick_topic: MakeTopic, order: Any
) -> None:
    topic = make_quick_topic(partitions=PARTITIONS)
    places = fill(quick_bootstrap, topic, 1000)
    seen = Seen()

    def handle(record: ConsumerRecord) -> None:
        lane = (record.partition, record.key if order == "key" else None)
        seen.begin(lane)
        time.sleep(random.random() * 0.002)
        seen.end(lane, record)

    workers = ConsumerWorkers(handle, settings_of(quick_bootstrap, topic), workers=6, order=order)
    with running(workers, topic):
        until(lambda: len(seen) == 1000)
    assert Counter(seen.places) == Counter(places)
    assert seen.clashes == 0
    assert all(offsets == sorted(offsets) for offsets in seen.by_lane.values())
    assert committed_of(quick_bootstrap, f"of-{topic}", topic) == ends_of(places)


@pytest.mark.parametrize("how", ["range", "cooperative-sticky", "consumer"])
def test_partitions_are_handed_over_and_every_record_is_handled_once(
    quick_bootstrap: str, make_quick_topic: MakeTopic, how: str
) -> None:
    topic = make_quick_topic(partitions=PARTITIONS)
    group = {"group.protocol": "consumer"} if how == "consumer" else {"partition.assignment.strategy": how}
    places = fill(quick_bootstrap, topic, 3000)
    seen, of_second = Seen(), Seen()

    def handle(record: ConsumerRecord) -> None:
        time.sleep(0.002)
        seen.end(record.offset, record)

    def handle_second(record: ConsumerRecord) -> None:
        of_second.end(None, record)
        handle(record)

    settings = settings_of(quick_bootstrap, topic, **group, **{"max.poll.records": 50})
    first = ConsumerWorkers(handle, settings, workers=4, records_max=200)
    with running(first, topic):
        until(lambda: len(seen) > 200)
        second = ConsumerWorkers(handle_second, settings, workers=4, records_max=200)
        with running(second, topic):
            until(lambda: len(of_second) > 50)
        until(lambda: len(seen) == len(places))
    assert Counter(seen.places) == Counter(places)
    assert committed_of(quick_bootstrap, f"of-{topic}", topic) == ends_of(places)


def test_a_worker_that_raises_ends_the_pool_and_its_record_is_read_again(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    topic = make_quick_topic(partitions=PARTITIONS)
    places = fill(quick_bootstrap, topic, 500)
    seen = Seen()
    bad = max(place for place in places if place[1] == 20)

    def handle(record: ConsumerRecord) -> None:
        if (record.partition, record.offset) == bad:
            raise LookupError("no such customer")
        seen.end(None, record)

    settings = settings_of(quick_bootstrap, topic)
    with ConsumerWorkers(handle, settings, workers=4) as workers:
        workers.subscribe([topic])
        with pytest.raises(LookupError, match="no such customer"):
            workers.run()
    committed = committed_of(quick_bootstrap, f"of-{topic}", topic)
    assert committed.get(bad[0], 0) <= bad[1]
    assert {place for place in places if place[1] < committed.get(place[0], 0)} <= set(seen.places)
    again = Seen()
    with running(ConsumerWorkers(lambda record: again.end(None, record), settings), topic):
        until(lambda: set(seen.places) | set(again.places) == places)
    assert bad in again.places


def test_memory_is_bounded_by_pausing(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=2)
    places = fill(quick_bootstrap, topic, 2000)
    gate, seen = threading.Event(), Seen()
    begun: list[int] = []

    def handle(record: ConsumerRecord) -> None:
        begun.append(record.offset)
        gate.wait(PATIENCE_SECONDS)
        seen.end(None, record)

    settings = settings_of(quick_bootstrap, topic, **{"max.poll.records": 20, "max.poll.interval.ms": 3000})
    workers = ConsumerWorkers(handle, settings, workers=2, records_max=100)
    with running(workers, topic):
        # It stays a member although no record is handled for longer than max.poll.interval.ms.
        until(lambda: len(begun) == 2 and workers.under_way >= 100)
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            assert workers.under_way <= 100 + 20
            time.sleep(0.05)
        gate.set()
        until(lambda: len(seen) == len(places))
    assert Counter(seen.places) == Counter(places)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="do not set it"):
        ConsumerWorkers(print, bootstrap_servers="127.0.0.1:9", enable_auto_commit=True)
    with pytest.raises(ConfigError, match="at least 1"):
        ConsumerWorkers(print, bootstrap_servers="127.0.0.1:9", workers=0)


# ---- the examples


class Example:
    """An example as a process; what it prints is kept over restarts."""

    def __init__(self, name: str, directory: Path, *arguments: str) -> None:
        self._command = [sys.executable, str(EXAMPLES / name), *arguments]
        self._output = directory / "output"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Example":
        self._output.touch()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop(signal.SIGKILL)

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output)

    def stop(self, with_signal: int) -> int:
        assert self._process is not None
        os.kill(self._process.pid, with_signal)
        return self._process.wait(PATIENCE_SECONDS)

    def places(self) -> list[Place]:
        # A line that was cut off by the kill is ignored.
        whole = self._output.read_text().rpartition("\n")[0].splitlines()
        return [(int(line.split()[0]), int(line.split()[1])) for line in whole]


QUICK_GROUP = ("session.timeout.ms=1500", "heartbeat.interval.ms=200", "auto.commit.interval.ms=50")


def test_a_killed_worker_pool_skips_no_record(
    quick_bootstrap: str, make_quick_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_quick_topic(partitions=PARTITIONS)
    places = fill(quick_bootstrap, topic, 4000)
    arguments = (quick_bootstrap, topic, f"of-{topic}", *QUICK_GROUP)
    with Example("worker_pool.py", tmp_path, *arguments) as example:
        for _ in range(3):
            before = len(set(example.places()))
            example.start()
            until(lambda before=before: len(set(example.places())) > before + 400)
            example.stop(signal.SIGKILL)
            done, committed = set(example.places()), committed_of(quick_bootstrap, f"of-{topic}", topic)
            assert {place for place in places if place[1] < committed.get(place[0], 0)} <= done
        example.start()
        until(lambda: set(example.places()) == places)
        assert example.stop(signal.SIGTERM) == 0
    assert committed_of(quick_bootstrap, f"of-{topic}", topic) == ends_of(places)
    # Some are handled again, since they were in progress at the kill, but by far not all.
    assert len(example.places()) < 2 * len(places)


def test_a_consumer_per_thread(quick_bootstrap: str, make_quick_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_quick_topic(partitions=PARTITIONS)
    arguments = (quick_bootstrap, topic, f"of-{topic}", *QUICK_GROUP)
    with (
        Example("consumer_per_thread.py", tmp_path, *arguments) as example,
        barnabas.Admin(bootstrap_servers=quick_bootstrap) as admin,
    ):

        def members() -> int:
            if f"of-{topic}" not in {each.group_id for each in admin.list_consumer_groups()}:
                return 0
            group = admin.describe_consumer_groups([f"of-{topic}"])[f"of-{topic}"]
            return sum(1 for member in group.members if member.assignment) if group.state == "Stable" else 0

        example.start()
        until(lambda: members() == 3)
        places = fill(quick_bootstrap, topic, 1000)
        until(lambda: set(example.places()) >= places)
        assert example.stop(signal.SIGTERM) == 0
    assert Counter(example.places()) == Counter(places)
    threads = {line.split()[2] for line in (tmp_path / "output").read_text().splitlines()}
    assert len(threads) >= 2
    by_partition: dict[int, list[int]] = {}
    for partition, offset in example.places():
        by_partition.setdefault(partition, []).append(offset)
    assert all(offsets == sorted(offsets) for offsets in by_partition.values())
    assert committed_of(quick_bootstrap, f"of-{topic}", topic) == ends_of(places)
