"""A bit flips on disk: the damaged batch is never returned as valid, and no other batch is lost."""

import dataclasses
from pathlib import Path

import pytest
from tests.support.logs import SMALL, LogBench, Read

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch

LARGE = dataclasses.replace(SMALL, segment_bytes=1 << 20)


def _filled(tmp_path: Path) -> tuple[LogBench, list[Read], int, int]:
    """A log of nine batches, its records, and the byte range of its fifth batch (offsets 12 to 14)."""
    bench = LogBench(tmp_path, LARGE)
    bench.fill(9)
    positions = [position for position, _ in bench.log.active.headers()]
    return bench, bench.records(), positions[4], positions[5]


def _refused(bench: LogBench, offset: int) -> bool:
    try:
        bench.log.read(offset, 1 << 20, upper_offset=bench.log.log_end_offset, at_least_one=True)
    except KafkaError as error:
        return error.code is ErrorCode.CORRUPT_MESSAGE
    return False


@pytest.mark.parametrize("bit", [0, 7])
def test_every_byte_of_a_middle_batch(tmp_path: Path, bit: int) -> None:
    bench, records, start, end = _filled(tmp_path)
    good = [read for read in records if not 12 <= read.offset <= 14]
    path = bench.file(".log")
    whole = path.read_bytes()
    for position in range(start, end):
        bench.crash()
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        bench.start()
        assert bench.log.log_end_offset == 27, position - start
        assert [(c.first_offset, c.next_offset) for c in bench.log.corrupt_ranges] == [(12, 15)], (
            position - start
        )
        assert _refused(bench, 12) and _refused(bench, 14), position - start
        assert bench.readable() == good, position - start
        assert path.read_bytes() == bytes(damaged)


def test_a_fetch_before_the_damage_ends_there(tmp_path: Path) -> None:
    bench, records, start, _ = _filled(tmp_path)
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start + 70] ^= 1
    bench.crash()
    path.write_bytes(data)
    bench.start()
    piece = bench.log.read(0, 1 << 20, upper_offset=27, at_least_one=True)
    assert piece.position + piece.size == start
    assert bench.records(15) == records[15:]


def test_damage_is_remembered_over_a_clean_restart(tmp_path: Path) -> None:
    bench, records, start, _ = _filled(tmp_path)
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start + 70] ^= 1
    bench.crash()
    path.write_bytes(data)
    bench.start()
    ranges = bench.log.corrupt_ranges
    bench.fill(1)
    bench.restart(clean=True)
    assert bench.log.corrupt_ranges == ranges
    assert _refused(bench, 13)
    assert bench.records(15)[:12] == records[15:]


def test_damage_at_the_end_of_an_older_segment_keeps_the_newer_ones(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    bench.fill(40)
    first = bench.log.segments[0]
    end = first.next_offset
    last_start = [position for position, _ in first.headers()][-1]
    good = [read for read in bench.records() if not end - 3 <= read.offset < end]
    bench.crash()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[last_start + 9] ^= 4
    path.write_bytes(data)
    bench.start()
    assert bench.log.log_end_offset == 120
    assert bench.readable() == good
    assert [(c.first_offset, c.next_offset) for c in bench.log.corrupt_ranges] == [(end - 3, end)]


def test_two_damaged_places_in_one_segment(tmp_path: Path) -> None:
    bench, records, start, end = _filled(tmp_path)
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    data[end + 8] ^= 1
    bench.crash()
    path.write_bytes(data)
    bench.start()
    assert [(c.first_offset, c.next_offset) for c in bench.log.corrupt_ranges] == [(0, 3), (15, 18)]
    assert bench.readable() == [r for r in records if not r.offset < 3 and not 15 <= r.offset < 18]
    assert start > 0


def test_damage_before_the_recovery_point_is_detected_by_verify(tmp_path: Path) -> None:
    bench, records, start, _ = _filled(tmp_path)
    bench.close()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start + 80] ^= 1
    path.write_bytes(data)
    bench.start(clean=True)
    assert bench.log.corrupt_ranges == []
    damage = bench.log.verify(bench.log.segments[0])
    assert [(c.first_offset, c.next_offset) for c in damage] == [(12, 15)]
    assert _refused(bench, 12)
    assert bench.records(15) == records[15:]
    assert bench.log.verify(bench.log.segments[0]) == damage


@pytest.mark.parametrize("field", range(0, 17))
def test_a_damaged_header_that_was_not_found_at_the_start_ends_a_scan_with_an_error(
    tmp_path: Path, field: int
) -> None:
    """After a clean stop the damage is not known: a lookup must fail or be right, and never loop or be
    wrong."""
    config = dataclasses.replace(LARGE, index_interval_bytes=1 << 20)
    bench = LogBench(tmp_path, config)
    bench.fill(9)
    records = bench.records()
    start = [position for position, _ in bench.log.active.headers()][4]
    bench.close()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start + field] ^= 0x80
    path.write_bytes(data)
    bench.start(clean=True)
    batches = bench.readable()
    assert [read for read in batches if read.offset < 12] == records[:12]
    assert all(read in records for read in batches if not 12 <= read.offset < 15)


@pytest.mark.parametrize("index_interval", [1, 1 << 20])
@pytest.mark.parametrize("first", [0, 12, 14, 15])
@pytest.mark.parametrize("bit", range(32))
def test_a_changed_leader_epoch_is_not_served_after_a_clean_stop(
    tmp_path: Path, bit: int, first: int, index_interval: int
) -> None:
    """No checksum covers it, but it does not fit between its neighbours, wherever a fetch begins."""
    bench = LogBench(tmp_path, dataclasses.replace(LARGE, index_interval_bytes=index_interval))
    bench.fill(9, epoch=5)
    records = bench.records()
    start, end = [position for position, _ in bench.log.active.headers()][4:6]
    bench.close()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start + 15 - bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    bench.start(clean=True)
    if first in (12, 14):
        assert _refused(bench, first)
    else:
        piece = bench.log.read(first, 1 << 20, upper_offset=27, at_least_one=True)
        sent = range(0, start) if first == 0 else range(end, len(data))
        assert range(piece.position, piece.position + piece.size) == sent
    assert bench.readable() == [read for read in records if not 12 <= read.offset < 15]
    assert [(c.first_offset, c.next_offset) for c in bench.log.corrupt_ranges] == [(12, 15)]


def test_a_batch_sent_as_a_record_value_does_not_pass_for_one_of_the_log(tmp_path: Path) -> None:
    """Recovery searches the next valid batch after damage; a client may have sent a batch as data."""
    bench = LogBench(tmp_path, LARGE)
    bench.fill(2)
    forged = bytes(build_batch([(1, None, b"forged", [])], base_offset=7, leader_epoch=0))
    bench.append(forged + b"tail of the record")
    bench.fill(2)
    records = bench.records()
    start = [position for position, _ in bench.log.active.headers()][2]
    bench.crash()
    path = bench.file(".log")
    data = bytearray(path.read_bytes())
    data[start + 8] ^= 0x40
    path.write_bytes(data)
    bench.start()
    assert bench.readable() == [read for read in records if read.offset != 6]
