"""What compaction must not change: a reader ends with the same keys and values at the same offsets, and
producers go on with their next sequence."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.log.rebuild import examine
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e" * 40])
ROWS = st.lists(
    st.tuples(KEYS, st.none() | st.sampled_from([b"", b"small", b"x" * 90])), min_size=1, max_size=4
)
PRODUCERS = st.sampled_from([11, 12, 13])


class CompactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.sequences = {11: 0, 12: 0, 13: 0}
        self.last_rows: dict[int, tuple[list[tuple[bytes, bytes | None]], int, bool]] = {}
        self.open_transactions: set[int] = set()

    @initialize(segment_bytes=st.sampled_from([700, 1500, 6000]), retention_ms=st.sampled_from([0, 500]))
    def open(self, segment_bytes: int, retention_ms: int) -> None:
        config = replace(COMPACTED, segment_bytes=segment_bytes, delete_retention_ms=retention_ms)
        self.bench = CompactionBench(self.root, config)

    def teardown(self) -> None:
        self.bench.crash()
        shutil.rmtree(self.root)

    @rule(rows=ROWS, codec=st.integers(0, 4))
    def put(self, rows: list[tuple[bytes, bytes | None]], codec: int) -> None:
        self.bench.put(*rows, compression=codec)

    @rule(rows=ROWS, producer=PRODUCERS, transactional=st.booleans(), codec=st.sampled_from([0, 4]))
    def put_as_producer(
        self, rows: list[tuple[bytes, bytes | None]], producer: int, transactional: bool, codec: int
    ) -> None:
        transactional |= producer in self.open_transactions
        self._send(producer, rows, self.sequences[producer], transactional, codec)
        self.last_rows[producer] = (rows, self.sequences[producer], transactional)
        self.sequences[producer] += len(rows)
        if transactional:
            self.open_transactions.add(producer)

    def _send(
        self,
        producer: int,
        rows: list[tuple[bytes, bytes | None]],
        sequence: int,
        transactional: bool,
        codec: int,
    ) -> bool:
        result = self.bench.put(
            *rows,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
            compression=codec,
        )
        return result.duplicate

    @precondition(lambda self: self.open_transactions)
    @rule(kind=st.sampled_from([ABORT_MARKER, COMMIT_MARKER]), data=st.data())
    def end_transaction(self, kind: int, data: st.DataObject) -> None:
        producer = data.draw(st.sampled_from(sorted(self.open_transactions)))
        self.open_transactions.remove(producer)
        self.bench.end_transaction(kind, producer)

    @rule(milliseconds=st.sampled_from([1, 400, 3000]))
    def wait(self, milliseconds: int) -> None:
        self.bench.clock.advance(milliseconds)

    @rule()
    def repeat_the_last_batch(self) -> None:
        for producer, (rows, sequence, transactional) in self.last_rows.items():
            assert self._send(producer, rows, sequence, transactional, 0)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        before = self.bench.latest()
        self.bench.restart(clean=clean)
        self.bench.cleaner = self.bench.new_cleaner()
        self.bench.log.update_high_watermark(self.bench.log.log_end_offset)
        assert self.bench.latest() == before

    @rule(entries=st.sampled_from([4, 10_000]))
    def clean(self, entries: int) -> None:
        bench = self.bench
        bench.settings = replace(bench.settings, map_bytes=24 * entries)
        bench.cleaner.settings = bench.settings
        latest = bench.latest()
        records = {record.offset: record for record in bench.all_records()}
        end, start = bench.log.log_end_offset, bench.log.log_start_offset
        bench.clean()
        assert bench.latest() == latest
        assert all(records[record.offset] == record for record in bench.all_records())
        assert (bench.log.log_end_offset, bench.log.log_start_offset) == (end, start)

    @invariant()
    def indexes_fit_their_segments(self) -> None:
        for segment in self.bench.log.segments[:-1]:
            if segment.size:
                examined = examine(segment, segment.next_offset, gaps=True, last=False)
                assert not examined.bad
                assert examined.max_timestamp == segment.max_timestamp or not segment.timestamps_known

    @invariant()
    def no_files_are_left_behind(self) -> None:
        assert not [path for path in self.bench.directory.iterdir() if path.suffix in (".cleaned", ".swap")]


CompactionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCompaction = CompactionMachine.TestCase
