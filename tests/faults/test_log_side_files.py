"""All files beside the .log files can be lost or damaged; the log gives the same answers afterwards."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.logs import LogBench

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER

SIDE_FILES = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")


def _busy_log(tmp_path: Path) -> LogBench:
    """Several segments with an idempotent producer, an aborted and a committed transaction, and three
    epochs."""
    bench = LogBench(tmp_path)
    for number in range(40):
        bench.clock.advance(1000)
        epoch = number // 15
        bench.append(b"plain-%d" % number, b"more", epoch=epoch)
        bench.append(b"once", producer_id=1, producer_epoch=0, base_sequence=number, epoch=epoch)
        if number % 8 == 3:
            bench.append(
                b"gone",
                producer_id=50 + number,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
                epoch=number // 15,
            )
            bench.end_transaction(ABORT_MARKER if number % 16 == 3 else COMMIT_MARKER, 50 + number)
    bench.append(b"open", producer_id=99, producer_epoch=0, base_sequence=0, transactional=True, epoch=2)
    return bench


def _answers(bench: LogBench) -> dict[str, object]:
    log = bench.log
    times = range(bench.clock.now_ms() - 41_000, bench.clock.now_ms() + 2000, 500)
    return {
        "records": bench.records(),
        "ends": (log.log_start_offset, log.log_end_offset),
        "times": [log.offset_for_timestamp(at) for at in times],
        "newest": log.max_timestamp_offset(),
        "aborted": log.aborted_transactions(0, log.log_end_offset),
        "aborted from the middle": log.aborted_transactions(60, 90),
        "epochs": log.leader_epochs.entries,
        "unstable": log.first_unstable_offset(),
        "repeats": [_repeat(bench, sequence) for sequence in range(33, 40)],
        "fenced": _repeat(bench, 45),
    }


def _repeat(bench: LogBench, sequence: int) -> tuple[int, int, bool] | ErrorCode:
    """Send a batch again; it is a repeat, so the log does not change."""
    batch = bench.batch(b"once", producer_id=1, producer_epoch=0, base_sequence=sequence)
    try:
        result = bench.log.append_as_leader(batch, 2)
    except KafkaError as error:
        return error.code
    return result.first_offset, result.last_offset, result.duplicate


def _delete(path: Path) -> None:
    path.unlink()


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(max(40, path.stat().st_size)))


def _odd_size(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\0\0\0")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _cases() -> list[tuple[str, Callable[[Path], None], bool]]:
    """After a clean stop an emptied transaction index looks like one that never had an entry."""
    cases = [
        (kind, spoil, clean)
        for kind in SIDE_FILES
        for spoil in (_delete, _garbage, _odd_size, _empty, _zeros)
        for clean in (True, False)
    ]
    cases.remove((".txnindex", _empty, True))
    return cases


@pytest.mark.parametrize(("kind", "spoil", "clean"), _cases())
def test_the_answers_are_the_same_without_the_file(
    tmp_path: Path, kind: str, spoil: Callable[[Path], None], clean: bool
) -> None:
    bench = _busy_log(tmp_path)
    before = _answers(bench)
    assert before["aborted"] and len(bench.log.segments) == 4
    bench.log.leader_epochs.save()
    bench.close() if clean else bench.crash()
    spoiled = [path for path in bench.directory.iterdir() if path.name.endswith(kind)]
    assert spoiled
    for path in spoiled:
        # An empty file cannot be damaged, and an empty transaction index is valid.
        if path.stat().st_size:
            spoil(path)
    bench.start(clean=clean)
    assert _answers(bench) == before


@pytest.mark.parametrize("bit", [0, 1, 7])
def test_single_bits_of_the_indexes(tmp_path: Path, bit: int) -> None:
    """Bits flip in the indexes of old segments, after a clean stop: lookups are still right."""
    bench = _busy_log(tmp_path)
    before = _answers(bench)
    bench.close()
    for kind in (".index", ".timeindex", ".txnindex"):
        for path in sorted(bench.directory.glob(f"*{kind}"))[1:3]:
            whole = path.read_bytes()
            for position in range(bit, len(whole), 7):
                spoiled = bytearray(whole)
                spoiled[position] ^= 1 << bit
                path.write_bytes(spoiled)
                bench.start(clean=True)
                assert _answers(bench) == before, (path.name, position)
                bench.close()
                path.write_bytes(whole)


def test_a_lost_recovery_checkpoint_only_costs_time(tmp_path: Path) -> None:
    bench = _busy_log(tmp_path)
    before = _answers(bench)
    bench.log.flush()
    bench.crash()
    bench.start(clean=False, recovery_point=0)
    assert _answers(bench) == before


def test_recovery_begins_at_the_recovery_point(tmp_path: Path) -> None:
    """Segments below it were flushed, so they are not read again; a damaged index there is found when it is
    used."""
    bench = _busy_log(tmp_path)
    before = _answers(bench)
    point = bench.log.active.base_offset
    bench.crash()
    first = bench.file(".log")
    data = bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    bench.start(clean=False, recovery_point=point)
    assert bench.log.corrupt_ranges == []
    first.write_bytes(bytes(data[:70]) + bytes([data[70] ^ 1]) + bytes(data[71:]))
    assert _answers(bench) == before


def test_index_entries_that_were_never_written_are_made_again(tmp_path: Path) -> None:
    """The active index is written in chunks; a killed process leaves it incomplete."""
    bench = LogBench(tmp_path)
    bench.fill(4)
    bench.crash()
    assert bench.file(".index").stat().st_size == 0
    bench.start()
    assert len(bench.log.active.index) > 0
    bench.close()
    assert bench.file(".index").stat().st_size > 0


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_an_index_that_lost_its_last_entries(tmp_path: Path, kind: str) -> None:
    """Its entries are valid, so only the log itself shows that some are missing."""
    bench = _busy_log(tmp_path)
    before = _answers(bench)
    bench.close()
    entry_size = {".index": 8, ".timeindex": 12}[kind]
    for path in bench.directory.glob(f"*{kind}"):
        path.write_bytes(path.read_bytes()[: entry_size * 2])
    bench.start(clean=True)
    assert _answers(bench) == before
    bench.restart(clean=True)
    assert _answers(bench) == before


def test_leftovers_of_deletions_and_cleaning_are_removed_at_a_start(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    bench.fill(3)
    bench.close()
    leftovers = [
        f"{7:020d}.log.deleted",
        f"{7:020d}.snapshot.deleted",
        f"{9:020d}.index.cleaned",
        f"{9:020d}.log.cleaned",
        f"{12:020d}.log.swap",
        f"{5:020d}.timeindex",
        "leader-epoch-checkpoint.tmp",
    ]
    for name in leftovers:
        (bench.directory / name).write_bytes(b"left over")
    bench.start(clean=True)
    assert not [name for name in leftovers if (bench.directory / name).exists()]
    assert len(bench.records()) == 9
