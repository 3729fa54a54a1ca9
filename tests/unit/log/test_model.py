"""Compares a log with a list: after any operations both hold the same records."""

import dataclasses
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.logs import SMALL, LogBench, Read

from barnabas.errors import ErrorCode, KafkaError

RETENTION_MS = 10_000


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.model: list[Read] = []
        self.batches: list[tuple[int, int, int]] = []  # first, last, timestamp
        self.start = 0
        self.end = 0
        self.sequence = 0

    @initialize(
        interval=st.sampled_from([1, 200, 5000]),
        size=st.sampled_from([300, 1000, 4000]),
        files=st.sampled_from([1, 4, 100]),
    )
    def open(self, interval: int, size: int, files: int) -> None:
        config = dataclasses.replace(
            SMALL,
            segment_bytes=size,
            index_interval_bytes=interval,
            retention_ms=RETENTION_MS,
            retention_bytes=-1,
        )
        self.bench = LogBench(self.root, config)
        self.bench.disk.open_files.most = files

    @rule(count=st.integers(1, 4), compression=st.integers(0, 4), idle_ms=st.integers(0, 2000))
    def append(self, count: int, compression: int, idle_ms: int) -> None:
        self.bench.clock.advance(idle_ms)
        values = [b"v%d" % (self.end + index) for index in range(count)]
        result = self.bench.append(*values, compression=compression)
        assert (result.first_offset, result.last_offset) == (self.end, self.end + count - 1)
        self._remember(values)

    @rule(idle_ms=st.integers(0, 500))
    def append_idempotently_and_repeat(self, idle_ms: int) -> None:
        self.bench.clock.advance(idle_ms)
        fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": self.sequence}
        first = self.bench.append(b"once", **fields)  # type: ignore[arg-type]
        again = self.bench.append(b"once", **fields)  # type: ignore[arg-type]
        assert again.duplicate and again.first_offset == first.first_offset == self.end
        self.sequence += 1
        self._remember([b"once"])

    def _remember(self, values: list[bytes]) -> None:
        self.model += [Read(self.end + index, value) for index, value in enumerate(values)]
        self.batches.append((self.end, self.end + len(values) - 1, self.bench.clock.now_ms()))
        self.end += len(values)

    @rule()
    def roll(self) -> None:
        self.bench.log.roll()

    @rule()
    def close_idle_files(self) -> None:
        self.bench.log.release_idle()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.bench.log.truncate_to(target)
        # Whole batches are removed, so the log may end below the target.
        self.end = next((first for first, last, _ in self.batches if first <= target <= last), target)
        self.batches = [batch for batch in self.batches if batch[1] < target]
        self.model = [read for read in self.model if read.offset < self.end]
        self.start = min(self.start, self.end)
        self._forget_producer()

    def _forget_producer(self) -> None:
        """The last sequence that is still known decides what may come next."""
        entry = self.bench.log.producers.entries.get(7)
        self.sequence = entry.last_sequence + 1 if entry else self.sequence

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.bench.log.delete_records_before(target)
        self._start_at(target)

    def _start_at(self, start: int) -> None:
        self.start = start
        self.model = [read for read in self.model if read.offset >= start]

    @rule(idle_ms=st.integers(0, RETENTION_MS))
    def retention(self, idle_ms: int) -> None:
        self.bench.clock.advance(idle_ms)
        now_ms = self.bench.clock.now_ms()
        self.bench.log.apply_retention(now_ms)
        start = self.bench.log.log_start_offset
        expired = [last for _, last, timestamp in self.batches if now_ms - timestamp > RETENTION_MS]
        assert start == self.start or start - 1 in expired
        self._start_at(start)
        self.bench.trash.empty()

    @rule()
    def reopen_cleanly(self) -> None:
        self.bench.restart(clean=True)

    @rule()
    def reopen_after_a_crash(self) -> None:
        self.bench.restart(clean=False)

    @rule()
    def reopen_after_a_flush_and_a_crash(self) -> None:
        self.bench.log.flush()
        point = self.bench.log.recovery_point
        self.bench.crash()
        self.bench.start(recovery_point=point)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def find_by_time(self, data: st.DataObject) -> None:
        _, _, near = data.draw(st.sampled_from(self.batches))
        at = near + data.draw(st.integers(-1, 1))
        kept = [(max(first, self.start), time) for first, last, time in self.batches if last >= self.start]
        expected = next((first for first, time in kept if time >= at), None)
        result = self.bench.log.offset_for_timestamp(at)
        assert (result.offset if result else None) == expected

    @rule(data=st.data())
    def read_from_somewhere(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(max(0, self.start - 2), self.end + 2))
        if self.start <= offset <= self.end:
            assert self.bench.records(offset) == [read for read in self.model if read.offset >= offset]
            return
        try:
            self.bench.log.read(offset, 100, upper_offset=self.end, at_least_one=True)
        except KafkaError as error:
            assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            raise AssertionError(f"offset {offset} was not refused")

    @invariant()
    def holds_the_same(self) -> None:
        if not hasattr(self, "bench"):
            return
        log = self.bench.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert self.bench.records() == self.model
        assert log.corrupt_ranges == []

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.bench.crash()
        shutil.rmtree(self.root)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
