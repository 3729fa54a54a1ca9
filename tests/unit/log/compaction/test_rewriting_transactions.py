"""What compaction keeps of transactions: committed data, and markers as long as they are needed."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER

ROOMY = replace(COMPACTED, segment_bytes=100_000)


@pytest.fixture
def bench(tmp_path: Path) -> CompactionBench:
    return CompactionBench(tmp_path, ROOMY)


def in_transaction(
    bench: CompactionBench, *rows: tuple[bytes, bytes | None], producer: int, sequence: int
) -> None:
    bench.put(*rows, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_aborted_records_are_removed_and_do_not_hide_committed_ones(bench: CompactionBench) -> None:
    bench.put((b"a", b"committed"))
    in_transaction(bench, (b"a", b"aborted"), producer=5, sequence=0)
    bench.end_transaction(ABORT_MARKER, 5)
    bench.put((b"b", b"end"))
    bench.clean()
    assert bench.pairs() == [(0, b"committed"), (3, b"end")]
    assert bench.latest()[b"a"] == (0, b"committed")


def test_an_abort_marker_stays_until_its_data_is_gone_and_its_horizon_has_passed(
    bench: CompactionBench,
) -> None:
    in_transaction(bench, (b"a", b"1"), producer=5, sequence=0)
    bench.end_transaction(ABORT_MARKER, 5)
    in_transaction(bench, (b"b", b"1"), producer=5, sequence=1)
    bench.end_transaction(COMMIT_MARKER, 5)

    def markers() -> list[tuple[int, bool]]:
        return [
            (header.base_offset, header.has_delete_horizon) for header in bench.headers() if header.is_control
        ]

    bench.clean()
    assert markers() == [(1, False), (3, False)], "the data was still there when the walk came by"
    bench.put((b"x", b"1"))
    bench.clean()
    assert markers() == [(1, True), (3, False)]
    bench.clock.advance(ROOMY.delete_retention_ms)
    bench.put((b"x", b"2"))
    bench.clean()
    assert markers() == [(3, False)], "the data of the committed transaction is still there"
    assert bench.log.aborted_transactions(0, 100) == []


def test_a_commit_marker_is_removed_after_its_data(bench: CompactionBench) -> None:
    in_transaction(bench, (b"a", b"1"), producer=5, sequence=0)
    bench.end_transaction(COMMIT_MARKER, 5)
    in_transaction(bench, (b"a", b"2"), producer=6, sequence=0)
    bench.end_transaction(COMMIT_MARKER, 6)
    in_transaction(bench, (b"b", b"1"), producer=5, sequence=1)
    bench.end_transaction(COMMIT_MARKER, 5)
    for round_number in range(3):
        bench.put((b"x", b"%d" % round_number))
        bench.clean()
        bench.clock.advance(ROOMY.delete_retention_ms)
    assert [header.base_offset for header in bench.headers() if header.is_control] == [3, 5]
    assert bench.latest().keys() == {b"a", b"b", b"x"}


def test_the_last_marker_of_a_producer_without_data_stays_for_its_epoch(bench: CompactionBench) -> None:
    in_transaction(bench, (b"a", b"1"), producer=5, sequence=0)
    bench.end_transaction(ABORT_MARKER, 5, epoch=1)
    for round_number in range(4):
        bench.put((b"x", b"%d" % round_number))
        bench.clean()
        bench.clock.advance(ROOMY.delete_retention_ms)
    bench.restart(clean=False)
    assert bench.log.producers.entries[5].epoch == 1


def test_an_open_transaction_is_not_touched(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"))
    bench.log.roll()
    in_transaction(bench, (b"a", b"open"), producer=5, sequence=0)
    bench.log.roll()
    bench.put((b"a", b"2"))
    bench.clean()
    assert bench.pairs() == [(0, b"1"), (1, b"open"), (2, b"2")]
    bench.end_transaction(COMMIT_MARKER, 5)
    bench.clean()
    assert bench.pairs() == [(2, b"2")]


def test_a_transaction_that_ends_beyond_the_cleaned_part_is_known_to_be_aborted(
    bench: CompactionBench,
) -> None:
    """The marker of producer 5 is after the start of the open transaction of producer 6, so its segment
    cannot be cleaned yet."""
    bench.put((b"a", b"committed"))
    in_transaction(bench, (b"a", b"aborted"), producer=5, sequence=0)
    bench.log.roll()
    in_transaction(bench, (b"b", b"open"), producer=6, sequence=0)
    bench.end_transaction(ABORT_MARKER, 5)
    bench.clean(roll=False)
    assert bench.pairs() == [(0, b"committed"), (2, b"open")]
    assert bench.latest() == {b"a": (0, b"committed")}


def test_a_lost_transaction_index_does_not_bring_aborted_records_back(bench: CompactionBench) -> None:
    bench.put((b"a", b"committed"))
    in_transaction(bench, (b"a", b"aborted"), producer=5, sequence=0)
    bench.end_transaction(ABORT_MARKER, 5)
    bench.log.roll()
    bench.file(".txnindex").unlink()
    bench.clean()
    assert bench.latest() == {b"a": (0, b"committed")}


def test_the_new_transaction_index_needs_no_rebuilding(
    bench: CompactionBench, caplog: pytest.LogCaptureFixture
) -> None:
    in_transaction(bench, (b"a", b"1"), producer=5, sequence=0)
    in_transaction(bench, (b"b", b"1"), producer=6, sequence=0)
    bench.end_transaction(ABORT_MARKER, 5)
    bench.end_transaction(ABORT_MARKER, 6)
    bench.clean()
    bench.restart(clean=True)
    aborted = bench.log.aborted_transactions(0, 100)
    assert [entry.producer_id for entry in aborted] == [5, 6], "their emptied last batches are still there"
    assert not caplog.records
