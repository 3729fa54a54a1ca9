"""A follower's log: the bytes of the leader's fetch answers give the same files as the leader has."""

import dataclasses
import errno
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logs import SMALL, LogBench

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.disk import RealDisk
from barnabas.log.errors import UnexpectedOffsetError
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, build_batch

FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def fetch(leader: LogBench, offset: int, bytes_max: int) -> memoryview:
    """What the leader answers to a follower: whole batches, the last may be cut off."""
    piece = leader.log.read(offset, bytes_max, upper_offset=leader.log.log_end_offset, at_least_one=True)
    return memoryview(leader.bytes_of(piece))


def catch_up(leader: LogBench, follower: LogBench, sizes: list[int]) -> None:
    turn = 0
    while follower.log.log_end_offset < leader.log.log_end_offset:
        data = fetch(leader, follower.log.log_end_offset, sizes[turn % len(sizes)])
        follower.log.append_as_follower(data)
        turn += 1


def files_of(bench: LogBench) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(bench.directory.iterdir())
        if path.suffix in FILES or path.name == "leader-epoch-checkpoint"
    }


append_steps = st.lists(
    st.tuples(
        st.sampled_from(["plain", "plain", "idempotent", "transactional", "abort", "commit", "epoch"]),
        st.integers(1, 4),
        st.integers(-1000, 2000),
        st.sampled_from([7, 8]),
    ),
    max_size=40,
)


class Writer:
    """Appends to the leader's log; remembers sequences and open transactions."""

    def __init__(self, leader: LogBench) -> None:
        self.leader = leader
        self.epoch = 0
        self.sequences = {7: 0, 8: 0}
        self.is_open = {7: False, 8: False}

    def write(self, steps: list[tuple[str, int, int, int]]) -> None:
        for kind, count, time_step, producer in steps:
            timestamp = self.leader.clock.now_ms() + time_step
            values = [b"v" * (20 * count)] * count
            if kind in ("plain", "epoch"):
                self.epoch += count if kind == "epoch" else 0
                self.leader.append(*values, epoch=self.epoch, timestamp=timestamp)
            elif kind in ("abort", "commit"):
                if self.is_open[producer]:
                    self.leader.end_transaction(ABORT_MARKER if kind == "abort" else COMMIT_MARKER, producer)
                    self.is_open[producer] = False
            elif kind == "transactional" or not self.is_open[producer]:
                self._write_as_producer(producer, values, timestamp, kind == "transactional")

    def _write_as_producer(
        self, producer: int, values: list[bytes], timestamp: int, is_transactional: bool
    ) -> None:
        self.leader.append(
            *values,
            epoch=self.epoch,
            timestamp=timestamp,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            transactional=is_transactional,
        )
        self.is_open[producer] |= is_transactional
        self.sequences[producer] += len(values)


@settings(deadline=None)
@given(
    append_steps,
    st.lists(st.integers(1, 3000), min_size=1, max_size=4),
    st.sampled_from([1, 200, 5000]),
    st.sampled_from([500, 1000, 4000]),
    st.sampled_from([24, 10_000]),
)
def test_a_follower_has_the_same_files_as_its_leader(
    steps: list[tuple[str, int, int, int]], sizes: list[int], interval: int, segment: int, index_bytes: int
) -> None:
    config = dataclasses.replace(
        SMALL,
        segment_bytes=segment,
        index_interval_bytes=interval,
        segment_index_bytes=index_bytes,
        segment_ms=1500,
    )
    with tempfile.TemporaryDirectory() as directory:
        leader = LogBench(Path(directory) / "leader", config)
        follower = LogBench(Path(directory) / "follower", config)
        writer = Writer(leader)
        writer.write(steps[: len(steps) // 2])
        catch_up(leader, follower, sizes)
        writer.write(steps[len(steps) // 2 :])
        catch_up(leader, follower, sizes)
        assert follower.log.producers.ongoing == leader.log.producers.ongoing
        assert follower.log.leader_epochs.entries == leader.log.leader_epochs.entries
        assert aborted(follower) == aborted(leader)
        leader.close()
        follower.close()
        assert files_of(follower) == files_of(leader)


def aborted(bench: LogBench) -> list[tuple[int, ...]]:
    return [tuple(entry) for entry in bench.log.aborted_transactions(0, 1 << 40)]


def test_one_write_per_segment_however_many_batches(tmp_path: Path) -> None:
    leader = LogBench(tmp_path / "leader", dataclasses.replace(SMALL, segment_bytes=1 << 20))
    leader.fill(200)
    disk = CountingDisk()
    follower = LogBench(tmp_path / "follower", dataclasses.replace(SMALL, segment_bytes=1 << 20), disk)
    follower.log.append_as_follower(fetch(leader, 0, 1 << 20))
    assert follower.records() == leader.records()
    assert disk.log_writes == 1


class CountingDisk(RealDisk):
    log_writes = 0
    full = False

    def pwrite(self, fd: int, data: bytes, position: int) -> int:  # type: ignore[override]
        if self.full:
            raise OSError(errno.ENOSPC, "full")
        self.log_writes += len(data) > 100
        return super().pwrite(fd, data, position)


def test_a_write_that_fails_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    leader, disk = LogBench(tmp_path / "leader"), CountingDisk()
    leader.append(b"a", epoch=3, producer_id=7, producer_epoch=0, base_sequence=0)
    follower = LogBench(tmp_path / "follower", disk=disk)
    disk.full = True
    with pytest.raises(KafkaError) as caught:
        follower.log.append_as_follower(fetch(leader, 0, 1000))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert follower.log.log_end_offset == follower.log.size == 0
    assert follower.log.leader_epochs.entries == [] and not follower.log.producers.entries
    disk.full = False
    follower.log.append_as_follower(fetch(leader, 0, 1000))
    assert follower.records() == leader.records()


def test_batches_before_a_damaged_one_are_written(tmp_path: Path) -> None:
    leader, follower = LogBench(tmp_path / "leader"), LogBench(tmp_path / "follower")
    leader.fill(3)
    data = bytearray(fetch(leader, 0, 10_000))
    data[-1] ^= 1
    assert follower.log.append_as_follower(memoryview(data)).last_offset == 5
    with pytest.raises(KafkaError) as caught:
        follower.log.append_as_follower(memoryview(data)[-leader.log.size // 3 :])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE and "wrong checksum" in str(caught.value)
    assert follower.log.log_end_offset == 6


def test_a_batch_that_holds_the_end_of_the_log_is_named(tmp_path: Path) -> None:
    leader, follower = LogBench(tmp_path / "leader"), LogBench(tmp_path / "follower")
    leader.append(b"a", b"b", b"c")
    follower.log.truncate_fully_and_start_at(1)
    with pytest.raises(UnexpectedOffsetError) as caught:
        follower.log.append_as_follower(fetch(leader, 1, 1000))
    assert (caught.value.first_offset, caught.value.last_offset) == (0, 2)


def test_batches_of_epochs_that_the_leader_cannot_know_are_left_out(tmp_path: Path) -> None:
    leader, follower = LogBench(tmp_path / "leader"), LogBench(tmp_path / "follower")
    leader.append(b"a", epoch=1)
    leader.append(b"b", epoch=2)
    result = follower.log.append_as_follower(fetch(leader, 0, 1000), leader_epoch=1)
    assert (result.last_offset, follower.log.log_end_offset) == (0, 1)


def test_a_batch_larger_than_the_segment_size_gets_a_segment(tmp_path: Path) -> None:
    leader = LogBench(tmp_path / "leader", dataclasses.replace(SMALL, segment_bytes=10_000))
    follower = LogBench(tmp_path / "follower", dataclasses.replace(SMALL, segment_bytes=500))
    leader.append(b"a")
    leader.append(b"x" * 1000)
    leader.append(b"c")
    follower.log.append_as_follower(fetch(leader, 0, 10_000))
    assert follower.log.bases == [0, 1, 2]
    assert follower.records() == leader.records()


def test_an_empty_answer_changes_nothing(tmp_path: Path) -> None:
    follower = LogBench(tmp_path)
    result = follower.log.append_as_follower(memoryview(b""))
    assert (result.first_offset, result.last_offset) == (-1, -1)
    cut = memoryview(build_batch([(0, None, b"v", [])]))[:-1]
    assert follower.log.append_as_follower(cut).last_offset == -1
