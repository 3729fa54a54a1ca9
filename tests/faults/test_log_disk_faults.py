"""A full or broken disk: the caller gets an error, the process goes on, and the log stays consistent."""

import dataclasses
import errno
from pathlib import Path

import pytest
from tests.support.faulty_disk import FaultyDisk
from tests.support.logs import SMALL, LogBench

from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.log.manager import LogManager, LogSettings

LARGE = dataclasses.replace(SMALL, segment_bytes=1 << 20)
SETTINGS = LogSettings("cluster", 1)


def _refused(bench: LogBench) -> None:
    with pytest.raises(KafkaError) as caught:
        bench.fill(1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_full_disk_refuses_and_the_log_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, LARGE, disk)
    bench.fill(3)
    disk.fail("pwrite", errno.ENOSPC)
    for _ in range(3):
        _refused(bench)
    assert not bench.log.offline and not bench.failures
    assert len(bench.records()) == 9
    disk.heal()
    bench.fill(2)
    assert [read.offset for read in bench.records()] == list(range(15))
    bench.restart(clean=False)
    assert [read.offset for read in bench.records()] == list(range(15))


@pytest.mark.parametrize("kept", [0, 1, 12, 60, 61, 100])
def test_a_short_write_leaves_no_torn_batch(tmp_path: Path, kept: int) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, LARGE, disk)
    bench.fill(2)
    size = bench.file(".log").stat().st_size
    disk.fail("pwrite", keep=kept, times=1)
    _refused(bench)
    assert bench.file(".log").stat().st_size == size
    assert not bench.log.offline
    bench.fill(1)
    assert [read.offset for read in bench.records()] == list(range(9))


def test_a_short_write_that_cannot_be_undone_takes_the_log_offline(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, LARGE, disk)
    bench.fill(2)
    disk.fail("pwrite", keep=30, times=1)
    disk.fail("truncate", errno.EIO, times=1)
    _refused(bench)
    assert bench.log.offline and len(bench.failures) == 1
    _refused(bench)
    disk.heal()
    bench.crash()
    bench.start()
    assert len(bench.records()) == 6


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
def test_a_broken_disk_takes_the_log_offline(tmp_path: Path, code: int) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, LARGE, disk)
    bench.fill(2)
    disk.fail("pwrite", code, times=1)
    _refused(bench)
    assert bench.log.offline and [problem.errno for problem in bench.failures] == [code]
    with pytest.raises(KafkaError) as caught:
        bench.records()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failed_sync_is_never_tried_again(tmp_path: Path) -> None:
    """After a failed fsync the kernel may have dropped the pages; a second fsync would succeed without
    them."""
    disk = FaultyDisk()
    bench = LogBench(tmp_path, dataclasses.replace(LARGE, flush_messages=1), disk)
    bench.fill(1)
    disk.fail("fsync", errno.EIO, times=1)
    _refused(bench)
    assert bench.log.offline


@pytest.mark.parametrize("call", range(12))
@pytest.mark.parametrize("operation", ["open", "pwrite", "truncate", "fsync_dir"])
def test_a_disk_that_fills_up_in_a_roll_leaves_a_whole_log(tmp_path: Path, operation: str, call: int) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    while bench.log.active.size < 1900:
        bench.fill(1)
    end = bench.log.log_end_offset
    disk.fail(operation, errno.ENOSPC, after=call)
    try:
        bench.fill(2)
    except KafkaError as error:
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.heal()
    assert not bench.log.offline
    acknowledged = bench.log.log_end_offset
    assert acknowledged >= end
    bench.fill(20)
    expected = list(range(bench.log.log_end_offset))
    assert [read.offset for read in bench.records()] == expected
    bench.restart(clean=False)
    assert [read.offset for read in bench.records()] == expected
    assert bench.log.corrupt_ranges == []


def test_an_index_that_cannot_be_written_does_not_refuse_data(tmp_path: Path) -> None:
    disk = FaultyDisk()
    config = dataclasses.replace(LARGE, index_interval_bytes=1)
    bench = LogBench(tmp_path, config, disk)
    disk.fail("pwrite", errno.ENOSPC, below=bench.file(".index"))
    bench.fill(700, records=1)
    assert len(bench.records()) == 700
    disk.heal()
    bench.restart(clean=True)
    assert len(bench.log.active.index) == 699
    assert bench.records()[500].offset == 500


@pytest.mark.parametrize("operation", ["pwrite", "open", "rename"])
def test_a_flush_fails_if_the_disk_is_too_full_for_the_epochs(tmp_path: Path, operation: str) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, LARGE, disk)
    bench.append(b"value", epoch=3)
    checkpoint = bench.directory / "leader-epoch-checkpoint"
    disk.fail(operation, errno.ENOSPC, below=checkpoint.with_name(checkpoint.name + ".tmp"))
    with pytest.raises(KafkaError) as caught:
        bench.log.flush()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (bench.log.recovery_point, bench.failures) == (0, [])
    disk.heal()
    bench.append(b"another", epoch=3)
    bench.log.flush()
    assert bench.log.recovery_point == 2
    assert checkpoint.read_text() == "0\n1\n3 0\n"


def test_power_loss_after_a_flush_keeps_the_epochs(tmp_path: Path) -> None:
    """The epochs are not in the batches that the next start reads."""
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    for epoch in (0, 0, 4, 7):
        for _ in range(20):
            bench.append(b"value" * 10, epoch=epoch)
    bench.log.flush()
    point, entries = bench.log.recovery_point, bench.log.leader_epochs.entries
    assert len(bench.log.segments) > 3 and len(entries) == 3
    bench.crash()
    disk.lose_power(tmp_path)
    bench.start(recovery_point=point)
    assert bench.log.leader_epochs.entries == entries


def test_power_loss_costs_what_was_not_flushed_and_nothing_else(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    bench.fill(20)
    bench.log.flush()
    flushed = bench.records()
    point = bench.log.recovery_point
    bench.fill(3)
    bench.crash()
    disk.lose_power(tmp_path)
    bench.start(clean=False, recovery_point=point)
    survivors = bench.records()
    assert survivors[: len(flushed)] == flushed
    bench.fill(2)
    offsets = [read.offset for read in bench.records()]
    assert offsets == list(range(len(offsets)))


def test_with_flush_messages_1_power_loss_costs_nothing(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, dataclasses.replace(SMALL, flush_messages=1), disk)
    bench.fill(25)
    acknowledged = bench.records()
    point = bench.log.recovery_point
    assert point == bench.log.log_end_offset
    bench.crash()
    disk.lose_power(tmp_path)
    bench.start(clean=False, recovery_point=point)
    assert bench.records() == acknowledged


def _manager(disk: FaultyDisk, *paths: Path) -> LogManager:
    manager = LogManager(list(paths), SETTINGS, disk, FakeClock())
    manager.load(lambda topic: TopicConfig())
    return manager


def test_one_broken_directory_does_not_stop_the_others(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bad, good = tmp_path / "bad", tmp_path / "good"
    manager = _manager(disk, bad, good)
    bench = LogBench(tmp_path / "other")
    logs = [manager.get_or_create(TopicPartition("t", number), None, TopicConfig()) for number in range(4)]
    assert {log.directory.parent for log in logs} == {bad, good}
    disk.fail("pwrite", errno.EIO, below=bad)
    outcomes = {}
    for log in logs:
        try:
            log.append_as_leader(bench.batch(b"value"), 0)
            outcomes[log.directory.parent] = None
        except KafkaError as error:
            outcomes[log.directory.parent] = error.code
    assert outcomes == {bad: ErrorCode.KAFKA_STORAGE_ERROR, good: None}
    assert manager.offline_dirs == [bad]
    assert all(log.offline == (log.directory.parent == bad) for log in logs)
    new = manager.get_or_create(TopicPartition("t", 9), None, TopicConfig())
    assert new.directory.parent == good
    manager.checkpoint()
    manager.apply_retention()
    manager.shutdown()
    assert not (bad / ".kafka_cleanshutdown").exists()
    assert (good / ".kafka_cleanshutdown").exists()


def test_a_checkpoint_that_does_not_fit_on_the_disk_is_an_error_that_names_the_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk()
    manager = _manager(disk, tmp_path / "data")
    manager.get_or_create(TopicPartition("t", 0), None, TopicConfig())
    disk.fail("pwrite", errno.ENOSPC, below=tmp_path / "data")
    manager.checkpoint()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        f"the checkpoints of {tmp_path}/data could not be written: [Errno 28] No space left on device"
    ]
    assert manager.offline_dirs == []
    disk.heal()
    manager.shutdown()


def test_a_directory_that_cannot_be_read_at_a_start_is_offline(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bad, good = tmp_path / "bad", tmp_path / "good"
    disk.fail("mkdir", errno.EACCES, below=bad)
    manager = _manager(disk, bad, good)
    assert manager.offline_dirs == [bad]
    manager.shutdown()
