"""All logs of a broker in all its log directories: loading, creating, deleting, and periodic work.

The periodic functions are plain calls; the broker has the timers. A directory whose disk fails goes
offline with its logs: requests to them are answered with KAFKA_STORAGE_ERROR, and the other directories
go on."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from barnabas.clock import Clock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition, Uuid
from barnabas.log import names
from barnabas.log.checkpoint_task import CheckpointFile, CheckpointTask
from barnabas.log.directories import LogDirectory
from barnabas.log.disk import Disk
from barnabas.log.errors import LogDirError
from barnabas.log.flushing import FlushTask, run_together
from barnabas.log.load_progress import Loading, LoadingGivenUp
from barnabas.log.loading import Marks, open_log
from barnabas.log.log import Log
from barnabas.log.state import Identity, LogState, Services
from barnabas.log.sync_task import SyncTask
from barnabas.log.trash import Trash

logger = logging.getLogger(__name__)

# How many logs are closed together. All their files are open until they are synced.
CLOSED_TOGETHER = 256


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The part of the broker's configuration that the manager needs."""

    cluster_id: str
    node_id: int
    producer_id_expiration_ms: int = 24 * 3600 * 1000


class LogManager:
    def __init__(self, log_dirs: list[Path], settings: LogSettings, disk: Disk, clock: Clock) -> None:
        if not log_dirs:
            raise LogDirError("log.dirs names no directory")
        self._settings = settings
        # May be changed while running.
        self.producer_id_expiration_ms = settings.producer_id_expiration_ms
        self._disk = disk
        self._clock = clock
        self._trash = Trash(self._disk, clock)
        self._services = Services(self._disk, clock, self._trash, self._log_failed, self._log_truncated)
        self._logs: dict[TopicPartition, Log] = {}
        self._home: dict[TopicPartition, LogDirectory] = {}
        self.directories = [LogDirectory(self._disk, Path(path)) for path in log_dirs]
        # Partitions whose log is deleted, but which may still be in the checkpoints.
        self._still_marked: set[TopicPartition] = set()
        # New logs whose directories could be lost in a power failure.
        self._unsynced: list[Log] = []
        # Directories in which logs were created or deleted since the last sync.
        self._changed: set[LogDirectory] = set()
        # Where logs that do not exist yet should be created.
        self.preferred_directories: dict[TopicPartition, LogDirectory] = {}
        # Copies of logs that move to other directories.
        self.futures: dict[TopicPartition, Log] = {}
        # Called with the partition and the new end of a log that was truncated.
        self.when_truncated: Callable[[TopicPartition, int], None] = lambda partition, offset: None
        # How many logs were deleted; see CheckpointTask.
        self._deletions = 0
        # The numbers of the last checkpoint task that was planned, and of the last one that was installed.
        self._planned_task = 0
        self._installed_task = 0
        # While logs are loaded. Any thread may read how far that is.
        self.loading = Loading()

    # -- starting and stopping

    def load(self, topic_configs: Callable[[str], TopicConfig]) -> None:
        """Claim the directories and open every log in them. A directory that cannot be read goes offline.

        May run in any thread, as long as nobody else uses the logs. Another thread may end it early with
        `loading.give_up`: then LoadingGivenUp is raised, and nothing stays locked or open."""
        try:
            self._load(topic_configs)
        except (LogDirError, LoadingGivenUp):
            self._let_go()
            raise

    def _load(self, topic_configs: Callable[[str], TopicConfig]) -> None:
        for directory in self.directories:
            try:
                directory.claim(self._settings.cluster_id, self._settings.node_id)
                self._load_directory(directory, topic_configs)
            except OSError as problem:
                if len(self.directories) == 1:
                    raise LogDirError(f"{directory.path} cannot be used: {problem}") from problem
                self._directory_failed(directory, problem)
        if not any(directory.online for directory in self.directories):
            raise LogDirError("none of the directories in log.dirs can be used; see the errors above")

    def _load_directory(self, directory: LogDirectory, topic_configs: Callable[[str], TopicConfig]) -> None:
        recovery_points = directory.read(names.RECOVERY_POINTS)
        log_starts = directory.read(names.LOG_STARTS)
        high_watermarks = directory.read(names.HIGH_WATERMARKS)
        partitions = directory.partitions()
        self.loading.begin(len(partitions), directory.was_clean)
        for partition in partitions:
            self.loading.go_on(partition)
            if partition in self._logs:
                other = self._home[partition].path
                raise LogDirError(f"{partition} is in {directory.path} and in {other}; remove one of them")
            marks = Marks(
                recovery_points.get(partition, 0),
                log_starts.get(partition, 0),
                high_watermarks.get(partition, 0),
                directory.was_clean,
                self.producer_id_expiration_ms,
            )
            self._open(directory, partition, None, topic_configs(partition.topic), marks)
            self.loading.done += 1
        self._still_marked |= {*recovery_points, *log_starts, *high_watermarks} - self._logs.keys()

    def _open(
        self,
        directory: LogDirectory,
        partition: TopicPartition,
        topic_id: Uuid | None,
        config: TopicConfig,
        marks: Marks,
    ) -> Log:
        self._home[partition] = directory
        identity = Identity(directory.path / str(partition), partition, topic_id)
        log = open_log(identity, self._services, config, marks)
        self._logs[partition] = log
        return log

    def shutdown(self, broker_epoch: int = -1) -> None:
        """Close everything. Directories that were closed without errors need no recovery at the next
        start."""
        failed: set[Path] = set()
        for future in self.futures.values():
            # Its directory stays: the next start sees that this move has to begin again.
            if not future.offline:
                future.close()
        self.futures.clear()
        logs = list(self._logs.values())
        for start in range(0, len(logs), CLOSED_TOGETHER):
            for log in self._close(logs[start : start + CLOSED_TOGETHER]):
                failed.add(self._home[log.partition].path)
        self._trash.empty(all_now=True)
        self.checkpoint()
        for directory in self.directories:
            if directory.online and directory.path not in failed:
                directory.mark_clean(broker_epoch)
            directory.release()
        self._logs.clear()

    def _close(self, logs: list[Log]) -> list[Log]:
        """Close these logs and flush them at the same time; returns those that could not be closed
        cleanly."""
        failed: list[Log] = []
        planned: list[tuple[Log, FlushTask]] = []
        for log in logs:
            try:
                task = log.plan_close()
            except KafkaError as problem:
                logger.error("%s could not be closed cleanly: %s", log, problem)
                failed.append(log)
                continue
            if task is not None:
                planned.append((log, task))
        for (log, task), error in zip(planned, run_together([task for _, task in planned]), strict=True):
            self.finish_flush(log, task, error)
            if error is not None:
                failed.append(log)
        for log in logs:
            log.abandon()
        return failed

    @property
    def were_clean(self) -> bool:
        """Whether every directory was closed cleanly when it was last used."""
        return all(directory.was_clean for directory in self.directories)

    def _let_go(self) -> None:
        """Release locks and files without writing anything."""
        for log in self._logs.values():
            log.abandon()
        for directory in self.directories:
            directory.release()

    # -- finding, creating, deleting

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def logs(self) -> Iterable[Log]:
        return self._logs.values()

    @property
    def highest_producer_id(self) -> int:
        """The highest producer id in any log, or -1; newly allocated ids must be above it.

        A log directory that comes from another broker may hold ids that our metadata never allocated."""
        return max(
            (producer_id for log in self._logs.values() for producer_id in log.producers.entries), default=-1
        )

    def get_or_create(self, partition: TopicPartition, topic_id: Uuid | None, config: TopicConfig) -> Log:
        """The partition's log; a new one is created in the directory that has the fewest logs.

        A new log is not safe from a power failure before sync_changes()."""
        log = self._logs.get(partition)
        if log is not None:
            return log
        online = [directory for directory in self.directories if directory.online]
        if not online or not self._home.get(partition, online[0]).online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {partition} is offline")
        if partition in self._still_marked:
            # After a crash, offsets in the checkpoints of the old log would be used for the new one.
            self.checkpoint()
        directory = self._directory_for(partition, online)
        try:
            log = self._open(directory, partition, topic_id, config, Marks())
        except OSError as problem:
            self._home.pop(partition, None)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition}: {problem.strerror}") from problem
        self._unsynced.append(log)
        self._changed.add(directory)
        return log

    def _directory_for(self, partition: TopicPartition, online: list[LogDirectory]) -> LogDirectory:
        preferred = self.preferred_directories.pop(partition, None)
        if preferred is not None and preferred.online:
            return preferred
        homes = list(self._home.values()) if len(online) > 1 else []
        return min(online, key=homes.count)

    def sync_changes(self) -> None:
        """Sync which logs were deleted and created, and the topic ids of new ones, to stable storage."""
        task = self.plan_sync()
        task.run()
        self.finish_sync(task)

    def plan_sync(self) -> SyncTask:
        """The same in three steps, of which only SyncTask.run() blocks; it may run in a thread."""
        created, self._unsynced = self._unsynced, []
        changed, self._changed = self._changed, set()
        return SyncTask(
            self._disk,
            {log: log.topic_id is not None for log in created if not log.offline},
            [directory for directory in changed if directory.online],
        )

    def finish_sync(self, task: SyncTask) -> None:
        for log, problem in task.log_problems:
            log.storage_error(problem, fatal=True)
        for directory, problem in task.directory_problems:
            self._directory_failed(directory, problem)

    def delete(self, partition: TopicPartition) -> None:
        """Remove the log now; its files are deleted after file.delete.delay.ms. See sync_changes."""
        log = self._logs.pop(partition, None)
        directory = self._home.pop(partition, None)
        self._forgotten(partition)
        if log is not None and directory is not None:
            log.delete()
            self._changed.add(directory)

    def set_aside(self, partition: TopicPartition) -> Path:
        """Close the log of a partition that belongs to no topic, and rename its directory to a stray name."""
        log = self._logs.pop(partition)
        directory = self._home.pop(partition)
        self._forgotten(partition)
        log.close()
        stray = directory.path / names.stray_directory_name(partition)
        self._disk.rename(log.directory, stray)
        self._disk.fsync_dir(directory.path)
        return stray

    # -- moving between directories

    def create_future(self, partition: TopicPartition, directory: LogDirectory) -> Log:
        """An empty log in another directory, to be filled with the records of the partition's log."""
        log = self._logs[partition]
        path = directory.path / names.future_directory_name(partition)
        try:
            future = open_log(
                Identity(path, partition, log.topic_id),
                self._services,
                log.config,
                Marks(log_start_offset=log.log_start_offset),
            )
        except OSError as problem:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition}: {problem.strerror}") from problem
        future.applies_retention = False
        self.futures[partition] = future
        return future

    def drop_future(self, partition: TopicPartition) -> None:
        future = self.futures.pop(partition, None)
        if future is not None and not future.offline:
            future.delete()

    def replace_by_future(self, partition: TopicPartition) -> Log:
        """The complete copy takes the place of the log, which is deleted; returns the new log. A crash in
        between leaves both, and the next start asks to remove one."""
        old, future = self._logs[partition], self.futures.pop(partition)
        home = next(each for each in self.directories if each.path == future.directory.parent)
        marks = Marks(
            future.log_end_offset,
            future.log_start_offset,
            future.high_watermark,
            clean=True,
            producer_expiration_ms=self.producer_id_expiration_ms,
        )
        future.close()
        future.leader_epochs.retire()
        try:
            self._disk.rename(future.directory, home.path / str(partition))
            self._disk.fsync_dir(home.path)
        except OSError as problem:
            self._directory_failed(home, problem)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition}: {problem.strerror}") from problem
        self.delete(partition)
        return self._open(home, partition, old.topic_id, old.config, marks)

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        return self._home.get(partition)

    def _log_truncated(self, log: LogState, offset: int) -> None:
        if log is self._logs.get(log.partition):
            self.when_truncated(log.partition, offset)
            future = self.futures.get(log.partition)
            if future is not None and not future.offline:
                future.truncate_to(offset)

    def _forgotten(self, partition: TopicPartition) -> None:
        self._still_marked.add(partition)
        self._deletions += 1

    # -- periodic work

    def apply_retention(self) -> int:
        """Delete old segments of all logs, expire idle producers and close idle files; returns how many
        segments were deleted."""
        return sum(self.retain(log) for log in self._healthy())

    def retain(self, log: Log) -> int:
        """The same for one log."""
        now_ms = self._clock.now_ms()
        deleted = 0
        try:
            deleted = log.apply_retention(now_ms)
        except KafkaError as problem:
            logger.error("retention of %s failed: %s", log, problem)
        log.producers.expire(now_ms, self.producer_id_expiration_ms)
        log.release_idle()
        return deleted

    def flush_task(self, log: Log) -> FlushTask | None:
        """The flush that is due because of flush.ms or because segments were rolled. `run` it in any thread,
        then call finish_flush."""
        upto = log.flush_due(self._clock.now_ms())
        return None if upto is None else log.plan_flush(upto)

    def finish_flush(self, log: Log, task: FlushTask, problem: OSError | None) -> None:
        """The task was run. A failed sync takes the log offline, unless the log was deleted meanwhile."""
        if log.closed:
            return
        if problem is None:
            log.finish_flush(task)
        else:
            log.flush_failed(problem)

    def plan_checkpoint(self) -> CheckpointTask:
        """The current content of all checkpoints. `write` it in any thread, then install it."""
        files: list[CheckpointFile] = []
        self._planned_task += 1
        for directory in self.directories:
            if not directory.online:
                continue
            logs = [log for tp, log in self._logs.items() if self._home[tp] is directory]
            starts = {log.partition: log.log_start_offset for log in logs if log.starts_inside_a_segment}
            for name, offsets in (
                (names.RECOVERY_POINTS, {log.partition: log.recovery_point for log in logs}),
                (names.HIGH_WATERMARKS, {log.partition: log.high_watermark for log in logs}),
                (names.LOG_STARTS, starts),
            ):
                files.append(CheckpointFile(directory, name, offsets, self._planned_task))
        return CheckpointTask(self._disk, self._planned_task, self._deletions, files)

    def plan_high_watermarks(self) -> CheckpointTask | None:
        """The same for the high watermarks only, which are written more often; None if none has moved."""
        offsets: dict[LogDirectory, dict[TopicPartition, int]] = {}
        for partition, log in self._logs.items():
            offsets.setdefault(self._home[partition], {})[partition] = log.high_watermark
        self._planned_task += 1
        files = [
            CheckpointFile(directory, names.HIGH_WATERMARKS, marks, self._planned_task)
            for directory, marks in offsets.items()
            if directory.online and directory.written_high_watermarks != marks
        ]
        if not files:
            return None
        return CheckpointTask(self._disk, self._planned_task, self._deletions, files, is_complete=False)

    def install_checkpoint(self, task: CheckpointTask) -> None:
        """Rename written checkpoints into place, unless a log was deleted or newer ones were installed
        meanwhile."""
        is_stale = task.deletions != self._deletions or task.number < self._installed_task
        failures = task.finish(discard=is_stale)
        # A full disk fails for each file: one error for a directory is enough.
        for directory, problem in {(each, error.errno): (each, error) for each, error in failures}.values():
            self._checkpoint_failed(directory, problem)
        if is_stale:
            return
        self._installed_task = task.number
        for file in task.files:
            if file.name == names.HIGH_WATERMARKS:
                file.directory.written_high_watermarks = file.offsets
        if task.is_complete:
            self._still_marked.clear()

    def checkpoint(self) -> None:
        """Plan, write and install the checkpoints in this thread."""
        task = self.plan_checkpoint()
        task.write()
        self.install_checkpoint(task)

    def removal(self) -> Callable[[], None] | None:
        """A function for any thread that removes the files whose delay has passed; None if there are none."""
        due = self._trash.take_due()
        return partial(self._trash.remove, due) if due else None

    # -- failures

    @property
    def offline_dirs(self) -> list[Path]:
        return [directory.path for directory in self.directories if not directory.online]

    def _healthy(self) -> list[Log]:
        return [log for log in self._logs.values() if not log.offline]

    def _checkpoint_failed(self, directory: LogDirectory, problem: OSError) -> None:
        if LogState.is_temporary(problem):
            # The old checkpoint stays valid: the next recovery only reads more than it has to.
            logger.error("the checkpoints of %s could not be written: %s", directory.path, problem)
        else:
            self._directory_failed(directory, problem)

    def _log_failed(self, log: LogState, problem: OSError) -> None:
        path = log.directory.parent
        directory = next((each for each in self.directories if each.path == path), None)
        if directory is not None and directory.online:
            self._directory_failed(directory, problem)

    def _directory_failed(self, directory: LogDirectory, problem: OSError) -> None:
        logger.error("%s goes offline: %s", directory, problem)
        directory.online = False
        for partition, log in self._logs.items():
            if self._home[partition] is directory:
                log.go_offline()
        for future in self.futures.values():
            if future.directory.parent == directory.path:
                future.go_offline()
