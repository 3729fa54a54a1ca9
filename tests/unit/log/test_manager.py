"""All logs of a broker: where they are stored, what survives a restart, and what a start refuses."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.faulty_disk import FaultyDisk

from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.ids import TopicPartition, random_uuid
from barnabas.log import names
from barnabas.log.disk import RealDisk
from barnabas.log.errors import LogDirError
from barnabas.log.manager import LogManager, LogSettings
from barnabas.records.builder import build_batch
from barnabas.records.validation import BatchRules, validate

CONFIG = TopicConfig(segment_bytes=1000, file_delete_delay_ms=1000)
SETTINGS = LogSettings("cluster-a", 1)
TP = TopicPartition("orders", 0)


def _manager(*paths: Path, settings: LogSettings = SETTINGS) -> LogManager:
    manager = LogManager(list(paths), settings, RealDisk(), FakeClock())
    manager.load(lambda topic: CONFIG)
    return manager


def _append(manager: LogManager, partition: TopicPartition, count: int) -> None:
    log = manager.get(partition)
    assert log is not None
    for _ in range(count):
        data = build_batch([(1_700_000_000_000, None, b"value", [])])
        log.append_as_leader(validate(memoryview(data), BatchRules.of(CONFIG), 1_700_000_000_000), 0)
        log.update_high_watermark(log.log_end_offset)


def _kill(manager: LogManager) -> None:
    """What the operating system does with a killed process: it releases locks and files and writes
    nothing."""
    for log in manager.logs():
        log.abandon()
    for directory in manager.directories:
        directory.release()


def test_a_clean_restart_keeps_everything(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    topic_id = random_uuid()
    manager.get_or_create(TP, topic_id, CONFIG)
    _append(manager, TP, 40)
    log = manager.get(TP)
    assert log is not None
    log.delete_records_before(17)
    manager.shutdown()
    for name in (names.RECOVERY_POINTS, names.HIGH_WATERMARKS, names.LOG_STARTS, names.CLEAN_SHUTDOWN):
        assert (tmp_path / name).exists()
    assert (tmp_path / names.RECOVERY_POINTS).read_text() == "0\n1\norders 0 40\n"
    assert (tmp_path / names.LOG_STARTS).read_text() == "0\n1\norders 0 17\n"
    again = _manager(tmp_path)
    reopened = again.get(TP)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset, reopened.high_watermark) == (17, 40, 40)
    assert (reopened.topic_id, reopened.recovery_point) == (topic_id, 40)
    assert not (tmp_path / names.CLEAN_SHUTDOWN).exists()
    again.shutdown()


def test_a_killed_process_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.get_or_create(TP, None, CONFIG)
    _append(manager, TP, 25)
    for log in manager.logs():
        task = manager.flush_task(log)
        assert task is not None
        manager.finish_flush(log, task, task.problem())
    manager.checkpoint()
    _append(manager, TP, 25)
    _kill(manager)
    again = _manager(tmp_path)
    reopened = again.get(TP)
    assert reopened is not None and reopened.log_end_offset == 50
    assert 0 < reopened.recovery_point < 50
    again.shutdown()


def test_partitions_spread_over_the_directories(tmp_path: Path) -> None:
    manager = _manager(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    for number in range(6):
        manager.get_or_create(TopicPartition("t", number), None, CONFIG)
    homes = [log.directory.parent.name for log in manager.logs()]
    assert sorted(homes) == ["a", "a", "b", "b", "c", "c"]
    assert manager.get_or_create(TopicPartition("t", 0), None, CONFIG) is manager.get(TopicPartition("t", 0))
    manager.shutdown()


def test_a_deleted_partition_is_gone_at_once_and_its_files_after_the_delay(tmp_path: Path) -> None:
    clock = FakeClock()
    manager = LogManager([tmp_path], SETTINGS, RealDisk(), clock)
    manager.load(lambda topic: CONFIG)
    manager.get_or_create(TP, None, CONFIG)
    _append(manager, TP, 30)
    manager.delete(TP)
    assert manager.get(TP) is None and not (tmp_path / "orders-0").exists()
    assert len(list(tmp_path.glob("orders-0.*-delete"))) == 1
    new = manager.get_or_create(TP, None, CONFIG)
    assert new.log_end_offset == 0
    assert manager.removal() is None
    clock.advance(1000)
    removal = manager.removal()
    assert removal is not None and manager.removal() is None
    removal()
    assert not list(tmp_path.glob("*-delete"))
    manager.shutdown()


def test_a_deletion_interrupted_by_a_crash_is_finished_at_the_next_start(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.get_or_create(TP, None, CONFIG)
    manager.delete(TP)
    _kill(manager)
    again = _manager(tmp_path)
    assert again.get(TP) is None and not list(tmp_path.glob("*-delete"))
    again.shutdown()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / names.LOCK)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
        with pytest.raises(LogDirError, match="in use"):
            _manager(tmp_path)
        holder.kill()
    _manager(tmp_path).shutdown()


def test_a_directory_of_another_cluster_or_node_is_refused(tmp_path: Path) -> None:
    _manager(tmp_path).shutdown()
    for other in (LogSettings("cluster-b", 1), LogSettings("cluster-a", 2)):
        with pytest.raises(LogDirError, match="belongs to node 1 of cluster cluster-a"):
            _manager(tmp_path, settings=other)


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    manager = _manager(tmp_path / "a")
    manager.get_or_create(TP, None, CONFIG)
    manager.shutdown()
    (tmp_path / "b" / "orders-0").mkdir(parents=True)
    with pytest.raises(LogDirError, match="remove one of them"):
        _manager(tmp_path / "a", tmp_path / "b")


def test_a_directory_keeps_its_id(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    first = manager.directories[0].directory_id
    manager.shutdown()
    again = _manager(tmp_path)
    assert again.directories[0].directory_id == first
    again.shutdown()


def test_upkeep_applies_retention_and_forgets_idle_producers(tmp_path: Path) -> None:
    clock = FakeClock()
    manager = LogManager([tmp_path], SETTINGS, RealDisk(), clock)
    manager.load(lambda topic: CONFIG)
    log = manager.get_or_create(TP, None, CONFIG)
    data = build_batch([(clock.now_ms(), None, b"v", [])], producer_id=3, producer_epoch=0, base_sequence=0)
    log.append_as_leader(validate(memoryview(data), BatchRules.of(CONFIG), clock.now_ms()), 0)
    log.update_high_watermark(1)
    assert manager.apply_retention() == 0 and manager.highest_producer_id == 3
    clock.advance(CONFIG.retention_ms + 1)
    assert manager.apply_retention() == 1
    assert log.log_start_offset == 1 and manager.highest_producer_id == -1
    manager.shutdown()


def test_many_partitions_open_without_reading_their_data(tmp_path: Path) -> None:
    """After a clean stop a start reads only the end of each log."""
    manager = _manager(tmp_path)
    for number in range(10):
        log = manager.get_or_create(TopicPartition("t", number), None, TopicConfig())
        for _ in range(60):
            data = build_batch([(1_700_000_000_000, None, b"v" * 5000, [])])
            log.append_as_leader(validate(memoryview(data), BatchRules.of(CONFIG), 1_700_000_000_000), 0)
    manager.shutdown()
    read: list[int] = []

    class CountingDisk(RealDisk):
        def pread(self, fd: int, size: int, position: int, /) -> bytes:
            data = RealDisk.pread(fd, size, position)
            read.append(len(data))
            return data

    again = LogManager([tmp_path], SETTINGS, CountingDisk(), FakeClock())
    again.load(lambda topic: CONFIG)
    total = sum(log.size for log in again.logs())
    assert sum(read) < total / 10 and total > 3_000_000
    again.shutdown()


def test_a_flush_that_ends_after_its_log_was_deleted_is_not_a_disk_failure(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    _append(manager, TP, 3)
    old = manager.get(TP)
    assert old is not None
    task = old.plan_flush()
    manager.delete(TP)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    for path in tmp_path.glob("*-delete"):
        shutil.rmtree(path)
    shutil.rmtree(old.directory)
    problem = task.problem()
    assert isinstance(problem, FileNotFoundError)
    manager.finish_flush(old, task, problem)
    assert not manager.offline_dirs


@pytest.mark.parametrize("killed_before_it_is_made_again", [False, True])
def test_checkpoints_of_a_deleted_log_are_not_used_for_a_new_one(
    tmp_path: Path, killed_before_it_is_made_again: bool
) -> None:
    """The old log started at 17. If that were used for the new log, its 3 records would be lost."""
    manager = _manager(tmp_path)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    _append(manager, TP, 40)
    old = manager.get(TP)
    assert old is not None
    old.delete_records_before(17)
    manager.checkpoint()
    manager.delete(TP)
    if killed_before_it_is_made_again:
        _kill(manager)
        manager = _manager(tmp_path)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    _append(manager, TP, 3)
    _kill(manager)
    again = _manager(tmp_path)
    log = again.get(TP)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)
    again.shutdown()


def test_a_checkpoint_planned_before_a_deletion_is_not_installed_after_it(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    _append(manager, TP, 40)
    task = manager.plan_checkpoint()
    task.write()
    manager.delete(TP)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    manager.install_checkpoint(task)
    assert "orders 0 40" not in (tmp_path / names.HIGH_WATERMARKS).read_text()
    later = manager.plan_checkpoint()
    later.write()
    manager.install_checkpoint(later)
    assert (tmp_path / names.HIGH_WATERMARKS).read_text() == "0\n1\norders 0 0\n"
    assert not list(tmp_path.glob("*.next"))
    manager.shutdown()


def test_a_checkpoint_is_written_while_a_thread_writes_another_one(tmp_path: Path) -> None:
    """Making a log that was deleted before needs new checkpoints at once."""
    manager = _manager(tmp_path)
    manager.get_or_create(TP, random_uuid(), CONFIG)
    manager.checkpoint()
    manager.delete(TP)
    task = manager.plan_checkpoint()
    manager.get_or_create(TP, random_uuid(), CONFIG)
    task.write()
    _append(manager, TP, 40)
    manager.checkpoint()
    manager.install_checkpoint(task)
    assert not manager.offline_dirs
    # The newer one stays.
    assert (tmp_path / names.HIGH_WATERMARKS).read_text() == "0\n1\norders 0 40\n"
    assert not list(tmp_path.glob("*.next"))
    manager.shutdown()


def test_a_checkpoint_that_was_not_installed_is_removed_at_the_next_start(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.plan_checkpoint().write()
    assert list(tmp_path.glob("*.next"))
    _kill(manager)
    _manager(tmp_path).shutdown()
    assert not list(tmp_path.glob("*.next"))


def test_many_logs_are_made_and_deleted_with_one_sync_of_their_directory(tmp_path: Path) -> None:
    disk = FaultyDisk()
    manager = LogManager([tmp_path], SETTINGS, disk, FakeClock())
    manager.load(lambda topic: CONFIG)
    partitions = [TopicPartition("t", number) for number in range(20)]
    before = dict(disk.calls)
    for partition in partitions:
        manager.get_or_create(partition, random_uuid(), CONFIG)
    assert disk.calls.get("fsync", 0) == before.get("fsync", 0)
    manager.sync_changes()
    assert disk.calls["fsync"] - before.get("fsync", 0) == 20
    assert disk.calls["fsync_dir"] - before.get("fsync_dir", 0) == 20 + 1
    for partition in partitions:
        manager.delete(partition)
    manager.sync_changes()
    manager.sync_changes()
    assert disk.calls["fsync_dir"] - before.get("fsync_dir", 0) == 20 + 2
    manager.get_or_create(partitions[0], random_uuid(), CONFIG)
    disk.fail("fsync_dir", errno.EIO)
    manager.sync_changes()
    assert manager.offline_dirs == [tmp_path]


def test_many_logs_are_flushed_when_they_are_closed(tmp_path: Path) -> None:
    disk = FaultyDisk()
    manager = LogManager([tmp_path], SETTINGS, disk, FakeClock())
    manager.load(lambda topic: CONFIG)
    partitions = [TopicPartition("t", number) for number in range(20)]
    for partition in partitions:
        manager.get_or_create(partition, random_uuid(), CONFIG)
        _append(manager, partition, 3)
    manager.sync_changes()
    manager.shutdown()
    disk.lose_power(tmp_path)
    again = LogManager([tmp_path], SETTINGS, disk, FakeClock())
    again.load(lambda topic: CONFIG)
    ends = [log.log_end_offset for log in again.logs()]
    assert ends == [3] * 20 and again.were_clean
    again.shutdown()


def test_high_watermarks_are_written_when_one_has_moved(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    manager.get_or_create(TP, None, CONFIG)
    _append(manager, TP, 3)
    task = manager.plan_high_watermarks()
    assert task is not None
    task.write()
    manager.install_checkpoint(task)
    assert (tmp_path / names.HIGH_WATERMARKS).read_text() == "0\n1\norders 0 3\n"
    assert not (tmp_path / names.RECOVERY_POINTS).exists()
    assert manager.plan_high_watermarks() is None
    _append(manager, TP, 1)
    assert manager.plan_high_watermarks() is not None
    _kill(manager)
    restarted = _manager(tmp_path)
    log = restarted.get(TP)
    # A follower goes on with the high watermark of the checkpoint, though its log has more records.
    assert log is not None and (log.high_watermark, log.log_end_offset) == (3, 4)
    restarted.shutdown()


def test_a_follower_removes_only_what_its_leader_removed(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    config = TopicConfig(segment_bytes=1000, retention_bytes=1, file_delete_delay_ms=0)
    log = manager.get_or_create(TP, None, config)
    _append(manager, TP, 40)
    log.applies_retention = False
    assert manager.apply_retention() == 0
    log.delete_records_before(log.bases[2])
    assert manager.apply_retention() == 2
    log.applies_retention = True
    assert manager.apply_retention() > 0
    manager.shutdown()
