"""The cleaner as the broker sees it: which log to compact next, what to do with the result, and its health.

Small synchronous steps for the loop that owns the logs; another process does the work (worker.py). New
segments are installed only if the log has not changed since the job was made. Up to which offset each log is
clean is stored in cleaner-offset-checkpoint in its log directory, in Kafka's format."""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from barnabas.errors import KafkaError
from barnabas.ids import TopicPartition
from barnabas.log import names
from barnabas.log.checkpoints import read_offsets, write_offsets
from barnabas.log.compaction.choice import Candidate, examine, last_of_producers, source_segments
from barnabas.log.compaction.job import CleanedGroup, CleaningJob, CleaningResult
from barnabas.log.compaction.swapping import replace_segments
from barnabas.log.disk import Disk
from barnabas.log.log import Log
from barnabas.log.segment import Segment

logger = logging.getLogger(__name__)

DEATHS_MAX = 3
RETRY_MS_MAX = 600_000


class Fault(Enum):
    """Why a job failed: because of the data in the log, because of the disk, or because the worker died."""

    DATA = "data"
    DISK = "disk"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """The limits of one job. They may change at any time; a job keeps the limits it was made with."""

    map_bytes: int = 128 << 20
    map_load_factor: float = 0.9
    bytes_per_second: float = float("inf")
    retry_ms: int = 15_000

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "CleanerSettings":
        """From the broker's typed settings; memory and speed are shared by all workers."""
        workers = max(1, values["log.cleaner.threads"])
        return cls(
            values["log.cleaner.dedupe.buffer.size"] // workers,
            values["log.cleaner.io.buffer.load.factor"],
            values["log.cleaner.io.max.bytes.per.second"] / workers,
            values["log.cleaner.backoff.ms"],
        )


@dataclass(frozen=True, slots=True)
class CleanerHealth:
    """`last_error` stays until a job succeeds and no partition is uncleanable any more."""

    last_error: str | None
    runs: int
    failures: int
    bytes_read: int
    bytes_written: int
    uncleanable: Mapping[TopicPartition, str]
    current: tuple[TopicPartition, ...]
    max_dirty_ratio: float


@dataclass(frozen=True, slots=True)
class SaveTask:
    """Writes the checkpoint files. `run` may block, and may be called in any thread."""

    disk: Disk
    files: dict[Path, dict[TopicPartition, int]]

    def run(self) -> None:
        for path, offsets in self.files.items():
            write_offsets(self.disk, path, offsets)


@dataclass(slots=True)
class _Trouble:
    """A partition that failed: how often in a row its worker died, and when to try again."""

    deaths: int
    retry_at_ms: int


class Cleaner:
    def __init__(self, logs: Callable[[], Iterable[Log]], disk: Disk, settings: CleanerSettings) -> None:
        self.settings = settings
        self._logs = logs
        self._disk = disk
        self._offsets: dict[Path, dict[TopicPartition, int]] = {}
        self._unsaved: set[Path] = set()
        # The log that the saved offset belongs to: a topic that was deleted and created again is dirty.
        self._known: dict[TopicPartition, Log] = {}
        self._troubles: dict[TopicPartition, _Trouble] = {}
        self._uncleanable: dict[TopicPartition, str] = {}
        # The jobs in progress.
        self._current: dict[TopicPartition, CleaningJob] = {}
        self._last_error: str | None = None
        self._runs = self._failures = self._bytes_read = self._bytes_written = 0
        self._max_dirty_ratio = 0.0

    def health(self) -> CleanerHealth:
        return CleanerHealth(
            self._last_error,
            self._runs,
            self._failures,
            self._bytes_read,
            self._bytes_written,
            dict(self._uncleanable),
            tuple(self._current),
            self._max_dirty_ratio,
        )

    # -- choosing

    def next_job(self, now_ms: int) -> CleaningJob | None:
        """A job for the log that needs cleaning most, or None. A log has one job at a time."""
        candidates = self._candidates(now_ms)
        self._max_dirty_ratio = max((candidate.dirty_ratio for candidate in candidates), default=0.0)
        due = [candidate for candidate in candidates if candidate.is_due]
        if not due:
            return None
        job = self._job(max(due, key=lambda candidate: candidate.dirty_ratio), now_ms)
        self._current[job.partition] = job
        return job

    def _candidates(self, now_ms: int) -> list[Candidate]:
        logs = {log.partition: log for log in self._logs()}
        self._forget_others(logs)
        candidates = []
        for partition, log in logs.items():
            if not log.config.cleanup_compact or log.offline:
                continue
            if partition in self._uncleanable or partition in self._current:
                continue
            trouble = self._troubles.get(partition)
            if trouble is not None and now_ms < trouble.retry_at_ms:
                continue
            try:
                candidates.append(examine(log, self._first_dirty(log), now_ms))
            except (OSError, KafkaError) as problem:
                self._note_failure(partition, str(problem), Fault.DISK, now_ms)
        return candidates

    def _forget_others(self, logs: Mapping[TopicPartition, Log]) -> None:
        for partition, log in list(self._known.items()):
            if logs.get(partition) is not log:
                self.forget(partition)

    def _first_dirty(self, log: Log) -> int:
        offset = self._saved(log.directory.parent).get(log.partition, log.log_start_offset)
        self._known[log.partition] = log
        if offset > log.log_end_offset:
            logger.warning(
                "%s ends below offset %d, up to which it was cleaned; cleaning all of it", log, offset
            )
            return log.log_start_offset
        return max(offset, log.log_start_offset)

    def _job(self, chosen: Candidate, now_ms: int) -> CleaningJob:
        log, config = chosen.log, chosen.log.config
        return CleaningJob(
            log.partition,
            log.directory,
            source_segments(log),
            last_of_producers(log, chosen.upper_offset),
            chosen.first_dirty_offset,
            chosen.upper_offset,
            now_ms,
            config.delete_retention_ms,
            config.segment_bytes,
            config.segment_index_bytes,
            config.index_interval_bytes,
            self.settings.map_bytes,
            self.settings.map_load_factor,
            self.settings.bytes_per_second,
        )

    # -- results

    def finish(self, job: CleaningJob, result: CleaningResult) -> bool:
        """Install the cleaned segments; False if the job failed or the log has changed meanwhile."""
        steps = self.finish_steps(job, result)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return bool(end.value)

    def finish_steps(self, job: CleaningJob, result: CleaningResult) -> Generator[None, None, bool]:
        """Like finish(), but with one step for each new segment; the log may be used between the steps."""
        if result.error is not None:
            self.fail(job, result.error, Fault.DATA if result.data_fault else Fault.DISK)
            return False
        self._bytes_read += result.bytes_read
        self._bytes_written += result.bytes_written
        for group in result.groups:
            if not self._install(job, group):
                self.abandon(job)
                return False
            yield
        self._current.pop(job.partition, None)
        directory = job.directory.parent
        self._saved(directory)[job.partition] = result.end_offset
        self._unsaved.add(directory)
        self._runs += 1
        self._troubles.pop(job.partition, None)
        if not self._uncleanable:
            self._last_error = None
        return True

    def _install(self, job: CleaningJob, group: CleanedGroup) -> bool:
        log = self._known.get(job.partition)
        if log is None or log.offline or log.directory != job.directory:
            return False
        old = _unchanged(log, job, group)
        if old is None:
            logger.info("%s changed while it was being cleaned; it will be cleaned again", log)
            return False
        try:
            replace_segments(log, [self._cleaned_segment(log, group)], old)
        except (OSError, KafkaError) as problem:
            self._note_failure(job.partition, str(problem), Fault.DISK, job.now_ms)
            return False
        return True

    def _cleaned_segment(self, log: Log, group: CleanedGroup) -> Segment:
        segment = Segment(log.disk, log.directory, group.bases[0], log.config, log.clock.now_ms())
        path = segment.path(names.LOG)
        file = self._disk.open(path.with_name(path.name + names.CLEANED))
        size = self._disk.size(file.fd)
        if size != group.size:
            raise OSError(f"{path}{names.CLEANED} has {size} bytes instead of {group.size}")
        segment.size = size
        segment.adopt_timestamps(group.first_timestamp, group.max_timestamp, group.max_timestamp_offset)
        return segment

    def fail(self, job: CleaningJob, error: str, fault: Fault) -> None:
        """The job failed. If its data was the cause, or if its worker died several times in a row, the
        partition is not cleaned any more; otherwise it is tried again later. Other partitions are not
        affected."""
        self._current.pop(job.partition, None)
        log = self._known.get(job.partition)
        if log is not None and log.directory == job.directory and not log.closed:
            self._note_failure(job.partition, error, fault, job.now_ms)
            self._remove_leftovers(job)

    def stopped(self, error: str) -> None:
        """The broker does not drive the cleaner any more."""
        self._last_error = error

    def abandon(self, job: CleaningJob) -> None:
        """Give up a job that did not fail, for example at a shutdown."""
        self._current.pop(job.partition, None)
        self._remove_leftovers(job)

    def _note_failure(self, partition: TopicPartition, error: str, fault: Fault, now_ms: int) -> None:
        trouble = self._troubles.setdefault(partition, _Trouble(0, 0))
        trouble.deaths += fault is Fault.WORKER
        trouble.retry_at_ms = now_ms + min(self.settings.retry_ms * 2**trouble.deaths, RETRY_MS_MAX)
        self._failures += 1
        self._last_error = f"{partition}: {error}"
        if fault is Fault.DATA or trouble.deaths >= DEATHS_MAX:
            self._uncleanable[partition] = error
            logger.error("%s will not be compacted any more: %s", partition, error)
        else:
            logger.warning("compaction of %s failed and will be tried again: %s", partition, error)

    def _remove_leftovers(self, job: CleaningJob) -> None:
        try:
            for segment in job.segments[:-1]:
                for suffix in names.SEGMENT_SUFFIXES:
                    path = names.segment_file(job.directory, segment.base_offset, suffix)
                    self._disk.unlink(path.with_name(path.name + names.CLEANED))
        except OSError as problem:
            # The next job for these segments, or the next start, removes them.
            logger.warning("unfinished files in %s could not be removed: %s", job.directory, problem)

    # -- up to which offset each log is clean

    def forget(self, partition: TopicPartition) -> None:
        """The partition was deleted."""
        self._known.pop(partition, None)
        self._troubles.pop(partition, None)
        self._uncleanable.pop(partition, None)
        for directory, offsets in self._offsets.items():
            if offsets.pop(partition, None) is not None:
                self._unsaved.add(directory)

    def truncated(self, partition: TopicPartition, offset: int) -> None:
        """The log of the partition was truncated at `offset`: what is written there next is dirty."""
        for directory, offsets in self._offsets.items():
            if offsets.get(partition, 0) > offset:
                offsets[partition] = offset
                self._unsaved.add(directory)

    def checkpoint_task(self) -> SaveTask | None:
        """Writes the offsets that have changed since the last call; None if none have."""
        directories, self._unsaved = self._unsaved, set()
        files = {path / names.CLEANER_OFFSETS: dict(self._offsets[path]) for path in directories}
        return SaveTask(self._disk, files) if files else None

    def _saved(self, directory: Path) -> dict[TopicPartition, int]:
        if directory not in self._offsets:
            self._offsets[directory] = read_offsets(self._disk, directory / names.CLEANER_OFFSETS)
        return self._offsets[directory]


def _unchanged(log: Log, job: CleaningJob, group: CleanedGroup) -> list[Segment] | None:
    """The segments of the group, if they have not changed since the job was made."""
    expected = [segment for segment in job.segments if segment.base_offset in group.bases]
    place = log.segment_for(expected[0].base_offset)
    current = log.segments[place : place + len(expected)]
    if len(current) < len(expected) or current[-1].active or any(segment.bad for segment in current):
        return None
    same = [(segment.base_offset, segment.next_offset, segment.size) for segment in current] == [
        (segment.base_offset, segment.next_offset, segment.size) for segment in expected
    ]
    return current if same else None
