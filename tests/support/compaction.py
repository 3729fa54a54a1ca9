"""A compacted log in a directory and its cleaner, for tests: put keys, clean, read back.

Adds keys, producers and transactions to `LogBench`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from tests.support.logs import LogBench

from barnabas.config.topic import TopicConfig
from barnabas.kernels.log_end import AppendResult
from barnabas.log.compaction.cleaner import Cleaner, CleanerSettings
from barnabas.log.compaction.job import CleaningJob, CleaningResult
from barnabas.log.compaction.rewriting import clean
from barnabas.log.disk import Disk
from barnabas.records.batch import BatchHeader, iter_headers
from barnabas.records.builder import BatchFields, Record, build_batch, read_records
from barnabas.records.validation import BatchRules, validate

COMPACTED = TopicConfig(
    segment_bytes=1000,
    index_interval_bytes=100,
    file_delete_delay_ms=0,
    cleanup_compact=True,
    cleanup_delete=False,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
)

Put = tuple[bytes | None, bytes | None]


class CompactionBench(LogBench):
    def __init__(self, directory: Path, config: TopicConfig = COMPACTED, disk: Disk | None = None) -> None:
        super().__init__(directory, config, disk)
        self.settings = CleanerSettings()
        self.cleaner = self.new_cleaner()

    def new_cleaner(self) -> Cleaner:
        return Cleaner(lambda: [self.log], self.disk, self.settings)

    def put(self, *rows: Put, **fields: Unpack[BatchFields]) -> AppendResult:
        """Append one batch of keys and values; None as a value is a tombstone. None as a key is not
        allowed in a compacted topic, but the cleaner must handle it."""
        now_ms = self.clock.now_ms()
        data = build_batch([(now_ms, key, value, []) for key, value in rows], **fields)
        rules = replace(BatchRules.of(self.config), compacted=False)
        result = self.log.append_as_leader(validate(memoryview(data), rules, now_ms), 0)
        self.log.update_high_watermark(self.log.log_end_offset)
        return result

    # -- cleaning

    def job(self) -> CleaningJob | None:
        return self.cleaner.next_job(self.clock.now_ms())

    def clean(self, *, roll: bool = True) -> CleaningResult | None:
        """Clean all but the active segment, in this process; nothing if no job was due."""
        if roll:
            self.log.roll()
        job = self.job()
        if job is None:
            return None
        result = clean(CleaningJob.from_json(job.to_json()), self.disk)
        if not self.cleaner.finish(job, CleaningResult.from_json(result.to_json())):
            raise AssertionError(f"the cleaned segments were not put in place: {self.cleaner.health()}")
        self.save()
        return result

    def save(self) -> None:
        task = self.cleaner.checkpoint_task()
        if task is not None:
            task.run()

    # -- reading

    def batches(self) -> Iterator[tuple[BatchHeader, bytes]]:
        for segment in self.log.segments:
            data = segment.path(".log").read_bytes()[: segment.size]
            for position, header in iter_headers(data):
                yield header, data[position : position + header.size]

    def all_records(self) -> list[Record]:
        """The records of data batches, including aborted ones."""
        return [
            record
            for header, batch in self.batches()
            if not header.is_control
            for record in read_records(batch)
        ]

    def pairs(self) -> list[tuple[int, bytes | None]]:
        """Offset and value of the records of data batches."""
        return [(record.offset, record.value) for record in self.all_records()]

    def headers(self) -> list[BatchHeader]:
        return [header for header, _ in self.batches()]

    def committed(self) -> list[Record]:
        """What a consumer with read_committed gets."""
        end = self.log.log_end_offset
        aborted = self.log.aborted_transactions(self.log.log_start_offset, end)
        return [
            record
            for header, batch in self.batches()
            if not header.is_control
            for record in read_records(batch)
            if record.offset < self.log.last_stable_offset
            and not (
                header.is_transactional
                and any(
                    entry.producer_id == header.producer_id
                    and entry.first_offset <= record.offset <= entry.last_offset
                    for entry in aborted
                )
            )
        ]

    def latest(self) -> dict[bytes, tuple[int, bytes]]:
        """Key to offset and value, as a consumer sees them that has read everything."""
        return latest_of(self.committed())


def latest_of(records: Sequence[Record]) -> dict[bytes, tuple[int, bytes]]:
    latest: dict[bytes, tuple[int, bytes]] = {}
    for record in records:
        if record.key is None:
            continue
        if record.value is None:
            latest.pop(record.key, None)
        else:
            latest[record.key] = (record.offset, record.value)
    return latest
