"""Compaction of damaged logs: damaged bytes are never removed, nor hidden by a new checksum."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.log.compaction.rewriting import clean
from barnabas.log.compaction.source import DamagedSourceError
from barnabas.log.disk import RealDisk
from barnabas.log.scan import CorruptRange
from barnabas.records.builder import ABORT_MARKER, read_records

ROOMY = replace(COMPACTED, segment_bytes=100_000)


@pytest.fixture
def bench(tmp_path: Path) -> CompactionBench:
    return CompactionBench(tmp_path, ROOMY)


def test_a_flipped_bit_is_never_cleaned_away(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), (b"b", b"1"))
    bench.put((b"a", b"2"))
    bench.log.roll()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    job = bench.job()
    assert job is not None
    with pytest.raises(DamagedSourceError, match="offset 0"):
        clean(job, RealDisk())
    assert path.read_bytes() == bytes(data)


@pytest.mark.parametrize("place", range(8))
def test_a_wrong_offset_is_found_although_no_checksum_covers_it(bench: CompactionBench, place: int) -> None:
    """Otherwise the older of two values would be taken for the newer one."""
    bench.put((b"a", b"older"))
    bench.put((b"a", b"newer"))
    bench.log.roll()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[place] ^= 0x02
    path.write_bytes(data)
    job = bench.job()
    assert job is not None
    with pytest.raises(DamagedSourceError, match="cannot follow"):
        clean(job, RealDisk())


def test_segments_with_known_damage_are_left_as_they_are(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, ROOMY)
    bench.put((b"a", b"1"))
    bench.put((b"lost", b"1"))
    bench.put((b"a", b"2"))
    bench.log.roll()
    bench.put((b"a", None))
    bench.put((b"b", b"1"), (b"b", b"2"))
    damaged = bench.log.segments[0]
    (_, _), (start, _), (end, _) = damaged.headers()
    damaged.bad = [CorruptRange(0, start, end, 1, 2)]
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    for _ in range(3):
        bench.clean()
        bench.clock.advance(ROOMY.delete_retention_ms)
        bench.put((b"c", b"1"))
    assert path.read_bytes() == bytes(data)
    records = [
        (record.offset, record.value)
        for segment in bench.log.segments
        for position, header in segment.headers()
        for record in read_records(segment.read_batch(position, header.size))
    ]
    assert (3, None) in records, "without the tombstone the value in the damaged segment would come back"
    assert (4, b"1") not in records
    assert bench.log.corrupt_ranges


def test_a_transaction_whose_end_is_damaged_limits_cleaning(bench: CompactionBench) -> None:
    """It is not known whether it was aborted. If it were taken for committed, it would hide committed
    records."""
    bench.put((b"a", b"committed"))
    bench.log.roll()
    bench.put((b"a", b"aborted"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    bench.log.roll()
    bench.end_transaction(ABORT_MARKER, 5)
    bench.log.roll()
    marker = bench.log.segments[2]
    marker.bad = [CorruptRange(2, 0, marker.size, 2, 3)]
    bench.clean()
    assert bench.pairs() == [(0, b"committed"), (1, b"aborted")]


def test_a_batch_cut_off_at_the_end_is_damage(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"))
    bench.log.roll()
    job = bench.job()
    assert job is not None
    first, active = job.segments
    cut = replace(job, segments=(first._replace(size=first.size - 1), active))
    with pytest.raises(DamagedSourceError, match="no complete batch"):
        clean(cut, RealDisk())
