"""A single log in a directory, for tests: append in a few words, read records back, stop cleanly or not."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Unpack

from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.ids import TopicPartition
from barnabas.kernels.batches import CheckedBatch
from barnabas.kernels.log_end import AppendResult
from barnabas.log.disk import Disk, RealDisk
from barnabas.log.loading import Marks, open_log
from barnabas.log.log import Log
from barnabas.log.reading import LogSlice
from barnabas.log.state import Identity, LogState, Services
from barnabas.log.trash import Trash
from barnabas.records.batch import iter_headers
from barnabas.records.builder import BatchFields, build_batch, control_batch, read_records
from barnabas.records.validation import BatchRules, trusted, validate

PARTITION = TopicPartition("orders", 0)
SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=200, file_delete_delay_ms=0)


class Read(NamedTuple):
    offset: int
    value: bytes


class LogBench:
    """`log` is open; close(), crash(), start() and restart() stop and start it. A test need not close it."""

    def __init__(self, directory: Path, config: TopicConfig = SMALL, disk: Disk | None = None) -> None:
        self.directory = directory / str(PARTITION)
        self.config = config
        self.disk = RealDisk() if disk is None else disk
        self.clock = FakeClock()
        self.failures: list[OSError] = []
        self.high_watermark = 0
        self._marks = Marks()
        self.log = self._open()

    def _open(self) -> Log:
        self.trash = Trash(self.disk, self.clock)
        services = Services(self.disk, self.clock, self.trash, self._failed)
        return open_log(Identity(self.directory, PARTITION, None), services, self.config, self._marks)

    def _failed(self, log: LogState, problem: OSError) -> None:
        self.failures.append(problem)

    # -- writing

    def batch(
        self, *values: bytes, timestamp: int | None = None, **fields: Unpack[BatchFields]
    ) -> CheckedBatch:
        """A checked batch of these values, stamped with the bench's time."""
        at = self.clock.now_ms() if timestamp is None else timestamp
        data = build_batch([(at, b"key", value, []) for value in values], **fields)
        return validate(memoryview(data), BatchRules.of(self.config), self.clock.now_ms())

    def append(
        self, *values: bytes, epoch: int = 0, timestamp: int | None = None, **fields: Unpack[BatchFields]
    ) -> AppendResult:
        """Append one batch and let the high watermark follow."""
        result = self.log.append_as_leader(self.batch(*values, timestamp=timestamp, **fields), epoch)
        self.log.update_high_watermark(self.log.log_end_offset)
        return result

    def fill(self, batches: int, records: int = 3, epoch: int = 0) -> None:
        """Append batches whose values are the offsets they get."""
        for _ in range(batches):
            first = self.log.log_end_offset
            self.append(*(b"value-%d" % offset for offset in range(first, first + records)), epoch=epoch)

    def end_transaction(
        self, kind: int, producer_id: int, epoch: int = 0, coordinator_epoch: int = 0
    ) -> AppendResult:
        """Append the marker that commits or aborts a producer's transaction."""
        data = control_batch(
            kind,
            coordinator_epoch,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp=self.clock.now_ms(),
        )
        epoch = self.log.leader_epochs.latest
        result = self.log.append_as_leader(trusted(data), epoch, from_client=False)
        self.log.update_high_watermark(self.log.log_end_offset)
        return result

    # -- reading

    def bytes_of(self, piece: LogSlice) -> bytes:
        return os.pread(piece.file.fileno(), piece.size, piece.position) if piece.file else b""

    def records(self, offset: int | None = None) -> list[Read]:
        """All records from `offset` (the log's start) on, as a consumer would get them."""
        return list(self._records(self.log.log_start_offset if offset is None else offset))

    def _records(self, offset: int) -> Iterator[Read]:
        while offset < self.log.log_end_offset:
            end = self.log.log_end_offset
            data = self.bytes_of(self.log.read(offset, 1 << 20, upper_offset=end, at_least_one=True))
            if not data:
                return
            for position, header in iter_headers(data):
                for record in read_records(data[position : position + header.size]):
                    if record.offset >= offset:
                        yield Read(record.offset, record.value or b"")
                offset = max(offset, header.next_offset)

    def readable(self) -> list[Read]:
        """The records that a consumer gets if it skips each offset that is refused."""
        batches: list[Read] = []
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            with suppress(KafkaError):
                for read in self._records(offset):
                    batches.append(read)
            offset = max(offset, batches[-1].offset + 1 if batches else 0) + 1
        return batches

    # -- stopping and starting

    def crash(self) -> None:
        """Stop as a killed process does: nothing more is written. Checkpoints are those of the last stop."""
        self.log.abandon()

    def close(self) -> None:
        self.log.close()

    def start(self, *, clean: bool = False, recovery_point: int = 0) -> Log:
        log_start, high_watermark = self.log.log_start_offset, self.log.high_watermark
        self._marks = Marks(recovery_point, log_start, high_watermark, clean)
        self.log = self._open()
        return self.log

    def restart(self, *, clean: bool) -> Log:
        self.close() if clean else self.crash()
        return self.start(clean=clean)

    # -- files

    def file(self, suffix: str, base_offset: int = 0) -> Path:
        return self.directory / f"{base_offset:020d}{suffix}"


def open_files_below(directory: Path) -> list[str]:
    """The names of the files in a directory that this process has open, once per descriptor; a name that is
    gone ends in " (deleted)"."""
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue
        if target.startswith(str(directory)):
            names.append(Path(target).name)
    return sorted(names)
