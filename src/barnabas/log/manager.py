"""All logs of a broker, over its log directories: loading, creating, deleting, and the periodic work on
them.

The periodic functions are plain calls; the broker has the timers. A directory whose disk fails goes
offline with its logs: what they are asked is answered with KAFKA_STORAGE_ERROR, and the other directories
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
from barnabas.log.loading import Marks, open_log
from barnabas.log.log import Log
from barnabas.log.state import Identity, LogState, Services
from barnabas.log.trash import Trash

logger = logging.getLogger(__name__)

# So many logs have files open at once while they are closed.
CLOSED_TOGETHER = 256


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the manager needs to know of the broker's configuration."""

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
        self._services = Services(self._disk, clock, self._trash, self._log_failed)
        self._logs: dict[TopicPartition, Log] = {}
        self._home: dict[TopicPartition, LogDirectory] = {}
        self.directories = [LogDirectory(self._disk, Path(path)) for path in log_dirs]
        # Partitions that have no log any more and may still be in the checkpoints; and how often a log went.
        self._still_marked: set[TopicPartition] = set()
        # New logs whose directories a power failure might take.
        self._unsynced: list[Log] = []
        # Directories in which logs were made or deleted since the last sync.
        self._changed: set[LogDirectory] = set()
        self._deletions = 0

    # -- starting and stopping

    def load(self, topic_configs: Callable[[str], TopicConfig]) -> None:
        """Claim the directories and open every log in them. A directory that cannot be read goes offline."""
        try:
            self._load(topic_configs)
        except LogDirError:
            self._let_go()
            raise

    def _load(self, topic_configs: Callable[[str], TopicConfig]) -> None:
        for directory in self.directories:
            try:
                directory.claim(self._settings.cluster_id, self._settings.node_id)
                self._load_directory(directory, topic_configs)
            except OSError as problem:
                self._directory_failed(directory, problem)
        if not any(directory.online for directory in self.directories):
            raise LogDirError("none of the directories of log.dirs can be used")

    def _load_directory(self, directory: LogDirectory, topic_configs: Callable[[str], TopicConfig]) -> None:
        recovery_points = directory.read(names.RECOVERY_POINTS)
        log_starts = directory.read(names.LOG_STARTS)
        high_watermarks = directory.read(names.HIGH_WATERMARKS)
        for partition in directory.partitions():
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
        """Close everything; directories in which all went well need no recovery at the next start."""
        failed: set[Path] = set()
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
        """Close these logs, with their flushes at once; those that could not be closed in order."""
        failed: list[Log] = []
        planned: list[tuple[Log, FlushTask]] = []
        for log in logs:
            try:
                task = log.plan_close()
            except KafkaError as problem:
                logger.error("%s could not be closed in order: %s", log, problem)
                failed.append(log)
                continue
            if task is not None:
                planned.append((log, task))
        for (log, task), trouble in zip(planned, run_together([task for _, task in planned]), strict=True):
            self.finish_flush(log, task, trouble)
            if trouble is not None:
                failed.append(log)
        for log in logs:
            log.abandon()
        return failed

    @property
    def were_clean(self) -> bool:
        """Whether every directory was closed in order when it was last used."""
        return all(directory.was_clean for directory in self.directories)

    def _let_go(self) -> None:
        """Give up locks and files without writing anything."""
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
        """The highest id of which a log remembers sequences, -1 for none; ids given out must be above it.

        A log directory taken over from another broker may hold ids that our metadata never gave out."""
        return max(
            (producer_id for log in self._logs.values() for producer_id in log.producers.entries), default=-1
        )

    def get_or_create(self, partition: TopicPartition, topic_id: Uuid | None, config: TopicConfig) -> Log:
        """The partition's log; a new one goes to the directory that has the fewest.

        What is made is not safe from a power failure before sync_changes."""
        log = self._logs.get(partition)
        if log is not None:
            return log
        online = [directory for directory in self.directories if directory.online]
        if not online or not self._home.get(partition, online[0]).online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {partition} is offline")
        if partition in self._still_marked:
            # The marks of a former log of this name, found after a crash, would be taken for the new one's.
            self.checkpoint()
        homes = list(self._home.values()) if len(online) > 1 else []
        directory = min(online, key=homes.count)
        try:
            log = self._open(directory, partition, topic_id, config, Marks())
        except OSError as problem:
            self._home.pop(partition, None)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition}: {problem.strerror}") from problem
        self._unsynced.append(log)
        self._changed.add(directory)
        return log

    def sync_changes(self) -> None:
        """Have it on stable storage which logs were deleted and made, and what tells whose those are."""
        created, self._unsynced = [log for log in self._unsynced if not log.offline], []
        for start in range(0, len(created), CLOSED_TOGETHER):
            self._sync(created[start : start + CLOSED_TOGETHER])
        changed, self._changed = self._changed, set()
        for directory in changed:
            if not directory.online:
                continue
            try:
                self._disk.fsync_dir(directory.path)
            except OSError as problem:
                self._directory_failed(directory, problem)

    def _sync(self, logs: list[Log]) -> None:
        planned: list[tuple[Log, FlushTask]] = []
        for log in logs:
            path = log.directory / names.PARTITION_METADATA
            try:
                files = [] if log.topic_id is None else [self._disk.open(path)]
            except OSError as problem:
                log.storage_error(problem, fatal=True)
            else:
                planned.append((log, FlushTask(self._disk, log.directory, 0, files)))
        for (log, _), trouble in zip(planned, run_together([task for _, task in planned]), strict=True):
            if trouble is not None:
                log.storage_error(trouble, fatal=True)

    def delete(self, partition: TopicPartition) -> None:
        """Take the log away now; its files go after file.delete.delay.ms. See sync_changes."""
        log = self._logs.pop(partition, None)
        directory = self._home.pop(partition, None)
        self._forgotten(partition)
        if log is not None and directory is not None:
            log.delete()
            self._changed.add(directory)

    def set_aside(self, partition: TopicPartition) -> Path:
        """Close the log of a partition that no topic claims and rename its directory out of the way."""
        log = self._logs.pop(partition)
        directory = self._home.pop(partition)
        self._forgotten(partition)
        log.close()
        stray = directory.path / names.stray_directory_name(partition)
        self._disk.rename(log.directory, stray)
        self._disk.fsync_dir(directory.path)
        return stray

    def _forgotten(self, partition: TopicPartition) -> None:
        self._still_marked.add(partition)
        self._deletions += 1

    # -- periodic work

    def apply_retention(self) -> int:
        """Delete what is due in all logs, expire idle producers and close files nobody reads; segments
        deleted."""
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
        """The flush that is due by flush.ms, or of segments that were rolled; `run` it in any thread, then
        finish."""
        upto = log.flush_due(self._clock.now_ms())
        return None if upto is None else log.plan_flush(upto)

    def flush_dirty(self) -> int:
        """Do all that is due here and now; how many logs were flushed."""
        flushed = 0
        for log in self._healthy():
            task = self.flush_task(log)
            if task is not None:
                flushed += 1
                self.finish_flush(log, task, task.problem())
        return flushed

    def finish_flush(self, log: Log, task: FlushTask, problem: OSError | None) -> None:
        """The task was run; a sync that failed takes the log offline, unless it was deleted meanwhile."""
        if log.closed:
            return
        if problem is None:
            log.finish_flush(task)
        else:
            log.flush_failed(problem)

    def plan_checkpoint(self) -> CheckpointTask:
        """What the checkpoints are to say now; `write` it in any thread, then install it."""
        files: list[CheckpointFile] = []
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
                files.append(CheckpointFile(directory, name, offsets))
        return CheckpointTask(self._disk, self._deletions, files)

    def install_checkpoint(self, task: CheckpointTask) -> None:
        """Put written checkpoints in place, unless a log they name was deleted meanwhile."""
        is_stale = task.deletions != self._deletions
        for directory, problem in task.finish(discard=is_stale):
            self._checkpoint_failed(directory, problem)
        if not is_stale:
            self._still_marked.clear()

    def checkpoint(self) -> None:
        """Plan, write and install, here and now."""
        task = self.plan_checkpoint()
        task.write()
        self.install_checkpoint(task)

    def removal(self) -> Callable[[], None] | None:
        """Removes what was deleted long enough ago, if anything was; to be called in any thread."""
        due = self._trash.take_due()
        return partial(self._trash.remove, due) if due else None

    # -- failures

    @property
    def offline_dirs(self) -> list[Path]:
        return [directory.path for directory in self.directories if not directory.online]

    def _healthy(self) -> list[Log]:
        return [log for log in self._logs.values() if not log.offline]

    def _checkpoint_failed(self, directory: LogDirectory, problem: OSError) -> None:
        if LogState.is_passing(problem):
            # The old checkpoint stands: the next recovery only does more than it has to.
            logger.error("the checkpoints of %s could not be written: %s", directory, problem)
        else:
            self._directory_failed(directory, problem)

    def _log_failed(self, log: LogState, problem: OSError) -> None:
        directory = self._home.get(log.partition)
        if directory is not None and directory.online:
            self._directory_failed(directory, problem)

    def _directory_failed(self, directory: LogDirectory, problem: OSError) -> None:
        logger.error("%s goes offline: %s", directory, problem)
        directory.online = False
        for partition, log in self._logs.items():
            if self._home[partition] is directory:
                log.offline = True
