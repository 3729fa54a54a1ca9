"""New and deleted logs are synced in three steps, so that the slow one can run in a thread: plan (owner), run
(any thread), finish (owner). See LogManager.plan_sync."""

from dataclasses import dataclass, field
from itertools import islice

from barnabas.log import names
from barnabas.log.directories import LogDirectory
from barnabas.log.disk import Disk
from barnabas.log.flushing import FlushTask, run_together
from barnabas.log.log import Log

# Each log has a file open while it is synced.
SYNCED_TOGETHER = 256


@dataclass(slots=True)
class SyncTask:
    """`logs` are new; the value says whether the log has a file with its topic id. `directories` are those in
    which a log was created or deleted."""

    disk: Disk
    logs: dict[Log, bool]
    directories: list[LogDirectory]
    log_problems: list[tuple[Log, OSError]] = field(default_factory=list)
    directory_problems: list[tuple[LogDirectory, OSError]] = field(default_factory=list)

    def run(self) -> None:
        """The slow step. It touches files and no state of the logs."""
        remaining = iter(self.logs.items())
        while some := list(islice(remaining, SYNCED_TOGETHER)):
            self._sync_logs(some)
        for directory in self.directories:
            try:
                self.disk.fsync_dir(directory.path)
            except OSError as problem:
                self.directory_problems.append((directory, problem))

    def _sync_logs(self, logs: list[tuple[Log, bool]]) -> None:
        planned: list[tuple[Log, FlushTask]] = []
        for log, has_topic_id in logs:
            path = log.directory / names.PARTITION_METADATA
            try:
                files = [self.disk.open(path)] if has_topic_id else []
            except OSError as problem:
                self.log_problems.append((log, problem))
            else:
                planned.append((log, FlushTask(self.disk, log.directory, 0, files)))
        for (log, _), error in zip(planned, run_together([task for _, task in planned]), strict=True):
            if error is not None:
                self.log_problems.append((log, error))
