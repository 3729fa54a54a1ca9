"""Damage to the files of one partition, without a broker."""

import dataclasses
from pathlib import Path

import pytest
from tests.jepsen.faults.damage import (
    IN_THE_RECORDS,
    SIDE_FILES,
    Damage,
    FlippedBit,
    GarbageTail,
    GarbledFiles,
    LostFiles,
    TornTail,
    batch_positions,
)
from tests.support.logs import SMALL, LogBench


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    """A log of several segments, closed."""
    bench = LogBench(tmp_path, dataclasses.replace(SMALL, segment_bytes=1000))
    bench.fill(20)
    bench.close()
    return bench


def content(bench: LogBench) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(bench.directory.iterdir())}


def changed(bench: LogBench, damage: Damage) -> dict[str, tuple[bytes, bytes | None]]:
    """The files that the damage has changed, before and after it."""
    before = content(bench)
    damage.apply(bench.directory)
    after = content(bench)
    assert set(after) <= set(before)
    return {name: (data, after.get(name)) for name, data in before.items() if after.get(name) != data}


def test_a_torn_tail_keeps_a_part_of_the_last_batch(bench: LogBench) -> None:
    last = max(path for path in bench.directory.glob("*.log") if path.stat().st_size)
    start = batch_positions(last)[-1]
    (((name, (before, after)),)) = changed(bench, TornTail(7)).items()
    assert (name, after) == (last.name, before[: start + 7])


@pytest.mark.parametrize("garbage", [None, 1])
def test_a_tail_of_garbage(bench: LogBench, garbage: int | None) -> None:
    ((before, after),) = changed(bench, GarbageTail(50, garbage)).values()
    assert after is not None and after[:-50] == before
    assert (after[-50:] == bytes(50)) == (garbage is None)


@pytest.mark.parametrize("position", [0, 8, IN_THE_RECORDS])
def test_one_bit_is_flipped_in_the_middle_of_the_first_segment(bench: LogBench, position: int) -> None:
    ((name, (before, after)),) = changed(bench, FlippedBit(position, bit=3)).items()
    assert name == min(path.name for path in bench.directory.glob("*.log"))
    assert after is not None
    ((place, was, now),) = [(i, a, b) for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert was ^ now == 1 << 3
    assert place - position in batch_positions(bench.directory / name)[1:-1] or position == 8


def test_side_files_are_lost_or_garbled(bench: LogBench) -> None:
    bench.start()
    kept = bench.records()
    bench.close()
    lost = changed(bench, LostFiles(("*.timeindex",)))
    assert lost and all(name.endswith(".timeindex") and after is None for name, (_, after) in lost.items())
    garbled = changed(bench, GarbledFiles())
    assert not any(name.endswith(".log") for name in garbled)
    assert {Path(name).suffix for name in garbled} >= {".index", ".snapshot"}
    assert set(changed(bench, LostFiles())) == set(garbled)
    bench.start()
    assert bench.records() == kept


def test_files_that_are_not_there_cannot_be_lost(bench: LogBench) -> None:
    with pytest.raises(RuntimeError, match="there are no files"):
        LostFiles(("*.nothing",)).apply(bench.directory)
    assert "*.index" in SIDE_FILES
