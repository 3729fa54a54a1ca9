"""How many files logs have open: none while they are idle, a limited number for many logs, and all that
readers need."""

import dataclasses
import errno
from pathlib import Path

import pytest
from tests.support.faulty_disk import FaultyDisk
from tests.support.logs import SMALL, LogBench, open_files_below

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.open_files import OpenFiles


class Holder:
    def __init__(self, files: OpenFiles) -> None:
        self.files = files
        self.is_open = self.is_used = False

    def open(self, descriptors: int = 1) -> None:
        self.is_open = True
        self.files.opened(self, descriptors)

    def was_used(self) -> bool:
        used, self.is_used = self.is_used, False
        return used

    def close_files(self) -> None:
        self.is_open = False
        self.files.closed(self)


def test_the_oldest_that_was_not_used_goes_first() -> None:
    files = OpenFiles(3)
    holders = [Holder(files) for _ in range(5)]
    for holder in holders[:3]:
        holder.open()
    holders[0].is_used = True
    holders[3].open()
    assert [holder.is_open for holder in holders] == [True, False, True, True, False]
    holders[4].open(3)
    assert [holder.is_open for holder in holders] == [False, False, False, False, True]
    assert len(files) == 3
    holders[4].open(1)
    assert len(files) == 1


def test_when_all_are_in_use_the_oldest_goes_and_the_newest_stays() -> None:
    files = OpenFiles(2)
    holders = [Holder(files) for _ in range(3)]
    for holder in holders:
        holder.is_used = True
        holder.open()
    assert [holder.is_open for holder in holders] == [False, True, True]


@pytest.mark.parametrize("clean", [True, False])
def test_an_idle_log_has_no_file_open_and_a_busy_one_has_one(tmp_path: Path, clean: bool) -> None:
    bench = LogBench(tmp_path)
    bench.fill(40)
    bench.restart(clean=clean)
    assert len(bench.log.segments) > 2
    assert open_files_below(tmp_path) == []
    bench.fill(1)
    assert open_files_below(tmp_path) == [f"{bench.log.active.base_offset:020d}.log"]
    bench.log.release_idle()
    bench.fill(1)
    bench.log.release_idle()
    assert len(open_files_below(tmp_path)) == 1
    bench.log.release_idle()
    assert open_files_below(tmp_path) == []
    assert len(bench.records()) == 126


def test_a_flush_closes_what_it_opened(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    bench.fill(40)
    bench.log.flush()
    bench.log.release_idle()
    bench.log.release_idle()
    assert open_files_below(tmp_path) == []


def test_a_log_of_many_segments_respects_the_limit(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, dataclasses.replace(SMALL, segment_bytes=300))
    bench.disk.open_files.most = 7
    for turn in range(1, 5):
        bench.fill(30)
        assert len(bench.records()) == 90 * turn
        assert bench.log.offset_for_timestamp(0) is not None
        assert len(open_files_below(tmp_path)) <= 7
    assert len(bench.log.segments) > 20


@pytest.mark.parametrize("offset", [1, 70, 100])
def test_a_slice_outlives_a_truncation_although_its_file_was_not_used_since(
    tmp_path: Path, offset: int
) -> None:
    """In the active segment, in one that becomes the active one, and in one that is removed."""
    bench = LogBench(tmp_path)
    bench.fill(40)
    assert len(bench.log.segments) > 2
    piece = bench.log.read(offset, 1 << 20, upper_offset=120, at_least_one=True)
    before = bench.bytes_of(piece)
    for _ in range(3):
        bench.log.release_idle()
    bench.log.truncate_to(4)
    bench.append(b"something else")
    assert before and bench.bytes_of(piece) == before


def test_too_many_open_files_fail_an_append_and_not_the_log_for_good(tmp_path: Path) -> None:
    """Connections may use all descriptors for a while."""
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    bench.fill(10)
    bench.restart(clean=True)
    disk.fail("open", errno.EMFILE, times=1)
    with pytest.raises(KafkaError) as caught:
        bench.append(b"refused")
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    bench.append(b"taken")
    assert not bench.failures and bench.records()[-1].value == b"taken"


def test_a_start_leaves_old_snapshots_for_later(tmp_path: Path) -> None:
    """Removing a file can take as long as reading ten."""
    bench = LogBench(tmp_path, dataclasses.replace(SMALL, segment_bytes=1 << 20))
    bench.fill(2)
    bench.restart(clean=True)
    bench.fill(1)
    bench.restart(clean=False)
    assert bench.file(".snapshot", 6).exists() and bench.log.producers.snapshots == []
    assert bench.trash.empty() == 1
    assert not bench.file(".snapshot", 6).exists()
    bench.restart(clean=True)
    assert bench.log.producers.snapshots == [9] and len(bench.records()) == 9
