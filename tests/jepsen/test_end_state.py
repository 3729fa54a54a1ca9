"""The checks of the end state find what they look for, in files and figures that are made up."""

import os
import socket
from pathlib import Path

import pytest
from tests.jepsen import end_state
from tests.jepsen.end_state import Allowance, Expected, Leadership, Usage
from tests.jepsen.watcher import Batch, Watched

from barnabas.ids import OFFSETS_TOPIC, TopicPartition
from barnabas.records.batch import read_header
from barnabas.records.builder import build_batch

PARTITION = TopicPartition("events", 0)


def batch(offset: int, value: bytes, epoch: int = 0) -> bytes:
    return bytes(build_batch([(0, None, value, ())], base_offset=offset, leader_epoch=epoch))


def facts_of(data: bytes) -> Batch:
    header = read_header(data)
    return Batch(header.last_offset, header.leader_epoch, header.crc)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_state, "SETTLE_SECONDS_MAX", 0.0)


class Replicas:
    """Two brokers with files of one partition."""

    def __init__(self, directory: Path) -> None:
        self.directories = {1: directory / "one", 2: directory / "two"}

    def write(
        self, broker_id: int, *batches: bytes, partition: TopicPartition = PARTITION, base: int = 0
    ) -> None:
        directory = self.directories[broker_id] / str(partition)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{base:020}.log").write_bytes(b"".join(batches))

    def problems(self, end: int, partition: TopicPartition = PARTITION) -> list[str]:
        return list(end_state.check_replicas(self.directories, {partition: end}))


@pytest.fixture
def replicas(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


# ---- replicas


def test_equal_replicas_may_have_other_segments_and_other_ends(replicas: Replicas) -> None:
    one, two, three = batch(0, b"one"), batch(1, b"two"), batch(2, b"not committed")
    replicas.write(1, one, two, three)
    replicas.write(2, one)
    replicas.write(2, two, base=1)
    assert replicas.problems(end=2) == []


@pytest.mark.parametrize("other", [batch(1, b"other"), batch(1, b"two", epoch=3), b""])
def test_a_replica_with_another_batch_below_the_high_watermark(replicas: Replicas, other: bytes) -> None:
    replicas.write(1, batch(0, b"one"), batch(1, b"two"))
    replicas.write(2, batch(0, b"one"), other)
    (problem,) = replicas.problems(end=2)
    assert "at offset 1" in problem


def test_replicas_that_both_end_before_the_high_watermark(replicas: Replicas) -> None:
    for broker_id in (1, 2):
        replicas.write(broker_id, batch(0, b"one"))
    assert replicas.problems(end=1) == []
    (problem,) = replicas.problems(end=2)
    assert "the logs end at 1" in problem


def test_a_compacted_topic_is_compared_in_the_last_segment_of_all(replicas: Replicas) -> None:
    partition = TopicPartition(OFFSETS_TOPIC, 0)
    replicas.write(1, batch(0, b"one"), partition=partition)
    replicas.write(2, batch(0, b"compacted"), partition=partition)
    assert len(replicas.problems(1, partition)) == 1
    for broker_id in (1, 2):
        replicas.write(broker_id, batch(1, b"two"), partition=partition, base=1)
    assert replicas.problems(2, partition) == []


# ---- batches that were seen


def test_batches_that_were_read_are_still_there(replicas: Replicas) -> None:
    one, two = batch(0, b"one"), batch(1, b"two")
    replicas.write(1, one, two)
    watched = {PARTITION: Watched({0: facts_of(one), 1: facts_of(two)})}
    assert list(end_state.check_batches(replicas.directories, watched)) == []
    replicas.write(2, one, batch(1, b"other"))
    (problem,) = end_state.check_batches(replicas.directories, watched)
    assert "on broker 2, the first at offset 1" in problem


def test_a_watched_batch_changes() -> None:
    watched = Watched()
    assert watched.add(5, Batch(7, 0, 99)) is None
    assert watched.add(5, Batch(7, 0, 99)) is None
    assert watched.end == 8
    problem = watched.add(5, Batch(7, 1, 99))
    assert problem is not None and "offset 5" in problem


# ---- leader epochs


def test_epochs_that_grow_and_have_one_leader_each() -> None:
    states = [(0, 1), (0, 1), (1, -1), (1, -1), (2, 2), (3, 2)]
    leaderships = [Leadership(PARTITION, epoch, leader) for epoch, leader in states]
    assert list(end_state.check_epochs(leaderships, ["events"])) == []


@pytest.mark.parametrize(
    ("states", "problem"),
    [([(0, 1), (1, 2), (0, 1)], "went from 1 to 0"), ([(0, 1), (0, 2)], "has the leaders 1 and 2")],
)
def test_an_epoch_that_goes_back_or_has_two_leaders(states: list[tuple[int, int]], problem: str) -> None:
    leaderships = [Leadership(PARTITION, epoch, leader) for epoch, leader in states]
    (found,) = end_state.check_epochs(leaderships, ["events"])
    assert problem in found
    assert list(end_state.check_epochs(leaderships, ["others"])) == []


# ---- outputs


OUTPUT = """\
[2026-01-01 00:00:00,000] INFO ready (barnabas)
[2026-01-01 00:00:01,000] ERROR disk 1 is full (barnabas.log)
[2026-01-01 00:00:02,000] ERROR cannot do it (barnabas.broker)
Traceback (most recent call last):
  File "broker.py", line 1, in <module>
[2026-01-01 00:00:03,000] WARNING no ERROR (barnabas)
"""


def test_errors_that_are_not_expected() -> None:
    expected = [Expected(r"disk \d is full", "the test fills it")]
    lines = end_state.error_lines(OUTPUT, expected)
    assert [line[:9] for line in lines] == ["[2026-01-", "Traceback"]
    (problem,) = end_state.check_outputs({1: OUTPUT, 2: ""}, expected)
    assert "broker 1 has printed 2 errors" in problem


# ---- usage


def test_usage_may_grow_by_a_share_and_a_little() -> None:
    before = {1: Usage(pid=10, sockets=20, files=30, resident_bytes=50 << 20)}
    allowance = Allowance(share=0.1, sockets=1, files=2, resident_bytes=1 << 20)
    most = Usage(pid=11, sockets=23, files=35, resident_bytes=56 << 20)
    assert list(end_state.check_usage(before, {1: most, 2: most}, allowance)) == []
    for name in ("sockets", "files", "resident_bytes"):
        more = {**vars(most), name: getattr(most, name) + 1}
        (problem,) = end_state.check_usage(before, {1: Usage(**more)}, allowance)
        assert name in problem


def test_sockets_may_move_from_one_broker_to_another() -> None:
    few, many = Usage(10, 20, 30, 50 << 20), Usage(11, 60, 30, 50 << 20)
    allowance = Allowance(share=0.0, sockets=0)
    assert list(end_state.check_usage({1: few, 2: many}, {1: many, 2: few}, allowance)) == []
    assert len(list(end_state.check_usage({1: few, 2: many}, {1: many, 2: many}, allowance))) == 1


def test_the_usage_of_a_process_counts_sockets_and_files(tmp_path: Path) -> None:
    before = end_state.usage_of(os.getpid())
    with socket.socket(), (tmp_path / "file").open("w"):
        after = end_state.usage_of(os.getpid())
    assert (after.sockets, after.files) == (before.sockets + 1, before.files + 1)
    assert after.resident_bytes > after.own_bytes > 1 << 20
