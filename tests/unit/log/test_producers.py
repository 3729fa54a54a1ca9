"""What a partition allows a producer: repeats are not written again, gaps and old epochs are refused."""

import errno
import struct
from pathlib import Path

import crc32c
import pytest
from tests.support.faulty_disk import FaultyDisk
from tests.support.logs import SMALL, LogBench

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.log_end import AppendResult
from barnabas.log import producers, refused_batches
from barnabas.log.errors import CorruptSnapshotError
from barnabas.log.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.log.producers import BatchMetadata, ProducerEntry
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, build_batch
from barnabas.records.validation import trusted

INT_MAX = 2**31 - 1


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    return LogBench(tmp_path)


def _send(
    bench: LogBench, sequence: int, *, count: int = 1, epoch: int = 0, transactional: bool = False
) -> AppendResult:
    values = [b"value"] * count
    return bench.append(
        *values, producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )


def _refused(bench: LogBench, code: ErrorCode, sequence: int, **fields: int) -> None:
    end = bench.log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        _send(bench, sequence, **fields)
    assert caught.value.code is code
    assert bench.log.log_end_offset == end


@pytest.mark.parametrize("clean", [None, True, False])
def test_any_of_the_last_five_batches_is_answered_again(bench: LogBench, clean: bool | None) -> None:
    sent = [_send(bench, 2 * number, count=2) for number in range(7)]
    if clean is not None:
        bench.restart(clean=clean)
    for number in range(2, 7):
        again = _send(bench, 2 * number, count=2)
        assert again.duplicate
        assert (again.first_offset, again.last_offset) == (
            sent[number].first_offset,
            sent[number].last_offset,
        )
    _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2, count=2)
    assert bench.log.log_end_offset == 14


def test_a_gap_and_a_partial_repeat_are_out_of_order(bench: LogBench) -> None:
    _send(bench, 0, count=3)
    for sequence in (0, 1, 2, 4, 100):
        _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, sequence)
    assert _send(bench, 3).first_offset == 3


def test_an_unknown_producer_may_begin_with_any_sequence(bench: LogBench) -> None:
    """Its earlier records may have been deleted."""
    assert _send(bench, 41).first_offset == 0
    _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 43)


def test_sequences_go_on_at_zero_after_the_highest(bench: LogBench) -> None:
    _send(bench, INT_MAX - 1, count=3)
    again = _send(bench, INT_MAX - 1, count=3)
    assert again.duplicate and again.last_offset == 2
    assert _send(bench, 1).first_offset == 3


def test_a_new_epoch_starts_at_sequence_zero_and_fences_the_old(bench: LogBench) -> None:
    _send(bench, 0)
    _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, epoch=1)
    _send(bench, 0, epoch=1)
    _refused(bench, ErrorCode.INVALID_PRODUCER_EPOCH, 1, epoch=0)
    _refused(bench, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=0)


def test_a_coordinators_batches_have_no_sequences(bench: LogBench) -> None:
    records = [(0, b"key", b"offsets", [])]
    for _ in range(3):
        batch = trusted(build_batch(records, producer_id=7, producer_epoch=2, transactional=True))
        assert not bench.log.append_as_leader(batch, 0, from_client=False).duplicate
    stale = trusted(build_batch(records, producer_id=7, producer_epoch=1, transactional=True))
    with pytest.raises(KafkaError) as caught:
        bench.log.append_as_leader(stale, 0, from_client=False)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_holds_the_last_stable_offset(bench: LogBench) -> None:
    bench.fill(1)
    _send(bench, 0, transactional=True)
    bench.fill(1)
    assert bench.log.first_unstable_offset() == bench.log.last_stable_offset == 3
    _refused(bench, ErrorCode.INVALID_TXN_STATE, 1)
    bench.end_transaction(COMMIT_MARKER, 7)
    assert bench.log.first_unstable_offset() is None
    assert bench.log.last_stable_offset == bench.log.log_end_offset == 8
    assert bench.log.aborted_transactions(0, 100) == []


def test_a_decided_transaction_stays_unstable_until_its_marker_is_replicated(bench: LogBench) -> None:
    _send(bench, 0, transactional=True)
    bench.log.update_high_watermark(1)
    bench.end_transaction(COMMIT_MARKER, 7)
    bench.log.producers.unreplicated[0] = 1
    bench.log.update_high_watermark(1)
    assert bench.log.first_unstable_offset() == 0
    bench.log.update_high_watermark(2)
    assert bench.log.first_unstable_offset() is None


def test_aborted_transactions_of_a_range(bench: LogBench) -> None:
    for first, producer_id in enumerate((11, 12)):
        bench.append(b"t", producer_id=producer_id, producer_epoch=0, base_sequence=first, transactional=True)
    bench.end_transaction(ABORT_MARKER, 12)
    bench.fill(1)
    bench.end_transaction(ABORT_MARKER, 11)
    aborted = bench.log.aborted_transactions(0, 7)
    assert [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in aborted] == [
        (12, 1, 2),
        (11, 0, 6),
    ]
    assert [entry.last_stable_offset for entry in aborted] == [0, 7]
    assert [entry.producer_id for entry in bench.log.aborted_transactions(3, 7)] == [11]


def test_a_marker_of_an_old_coordinator_or_epoch_is_fenced(bench: LogBench) -> None:
    _send(bench, 0, epoch=3, transactional=True)
    bench.end_transaction(COMMIT_MARKER, 7, epoch=3, coordinator_epoch=5)
    with pytest.raises(KafkaError) as caught:
        bench.end_transaction(COMMIT_MARKER, 7, epoch=3, coordinator_epoch=4)
    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(KafkaError) as caught:
        bench.end_transaction(COMMIT_MARKER, 7, epoch=2, coordinator_epoch=5)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_without_a_transaction_ends_nothing(bench: LogBench) -> None:
    bench.end_transaction(ABORT_MARKER, 7)
    assert bench.log.aborted_transactions(0, 10) == []
    assert bench.log.producers.entries[7].last_sequence == -1


def test_idle_producers_expire_but_not_those_in_a_transaction(bench: LogBench) -> None:
    _send(bench, 0)
    bench.append(b"t", producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    bench.clock.advance(1000)
    assert bench.log.producers.expire(bench.clock.now_ms(), 1001) == 0
    assert bench.log.producers.expire(bench.clock.now_ms(), 1000) == 1
    assert list(bench.log.producers.entries) == [8]
    assert _send(bench, 5).first_offset == 2


def test_a_snapshot_is_taken_at_a_roll_and_is_deleted_with_its_segment(bench: LogBench) -> None:
    for sequence in range(60):
        _send(bench, sequence)
    bases = bench.log.bases
    assert len(bases) > 2 and bench.log.producers.snapshots == bases[1:]
    bench.log.delete_records_before(bases[2])
    bench.log.apply_retention(bench.clock.now_ms())
    bench.trash.empty()
    assert sorted(path.name for path in bench.directory.glob("*.snapshot")) == [
        f"{b:020d}.snapshot" for b in bases[2:]
    ]
    bench.restart(clean=False)
    assert _send(bench, 59).duplicate


def test_the_snapshot_file_is_kafkas() -> None:
    entry = ProducerEntry(5, 2, 9, 1234, 40)
    entry.batches.append(BatchMetadata(17, 44, 3, 1234))
    data = encode_snapshot({5: entry})
    body = struct.pack(">iqhiqiqiq", 1, 5, 2, 17, 44, 3, 1234, 9, 40)
    assert data == struct.pack(">hI", 1, crc32c.crc32c(body)) + body


def test_a_snapshot_keeps_the_earlier_batches_after_kafkas_own_table() -> None:
    entry = ProducerEntry(5, 2, -1, 1000)
    entry.batches.extend(BatchMetadata(number, number, 0, 1000) for number in range(5))
    data = encode_snapshot({5: entry, 6: ProducerEntry(6, 0)})
    loaded = decode_snapshot(data)
    assert list(loaded[5].batches) == list(entry.batches)
    assert not loaded[6].batches
    assert data[6 + 4 + 2 * 46 :][:4] == struct.pack(">i", 4)


@pytest.mark.parametrize("cut", [0, 3, 8, 30])
def test_a_damaged_snapshot_is_refused(cut: int) -> None:
    entry = ProducerEntry(5, 2, -1, 1234)
    data = encode_snapshot({5: entry})
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(data[:cut])
    flipped = bytearray(data)
    flipped[-1] ^= 1
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(flipped))


def test_a_snapshot_that_cannot_be_written_does_not_stop_a_roll(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    _send(bench, 0)
    disk.fail("pwrite", errno.ENOSPC, below=bench.file(".snapshot", 1))
    bench.log.roll()
    assert bench.log.bases == [0, 1] and bench.log.producers.snapshots == []
    bench.restart(clean=False)
    assert _send(bench, 0).duplicate


# ---- batches that are refused for now, as on a full disk


@pytest.mark.parametrize("is_known", [True, False])
def test_what_was_sent_behind_a_batch_that_did_not_fit_waits_for_it(tmp_path: Path, is_known: bool) -> None:
    """Without this a known producer would get OUT_OF_ORDER_SEQUENCE_NUMBER, after which some clients send
    everything again with a new epoch; and the batches of an unknown one would be taken with a gap."""
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    first = 0
    if is_known:
        _send(bench, 0)
        first = 1
    disk.fail("pwrite", errno.ENOSPC)
    _refused(bench, ErrorCode.KAFKA_STORAGE_ERROR, first)
    disk.heal()
    _refused(bench, ErrorCode.KAFKA_STORAGE_ERROR, first + 1)
    _refused(bench, ErrorCode.KAFKA_STORAGE_ERROR, first + 2)
    if is_known:
        assert _send(bench, 0).duplicate
    # Another producer is not concerned.
    bench.append(b"other", producer_id=8, producer_epoch=0, base_sequence=5)
    for sequence in range(first, first + 3):
        assert not _send(bench, sequence).duplicate


def _refuse(bench: LogBench, sequence: int, epoch: int = 0) -> None:
    """What the broker does with a batch when too few replicas are in sync."""
    batch = bench.batch(b"value", producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    bench.log.producers.refuse(batch, ErrorCode.NOT_ENOUGH_REPLICAS)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("first", [1, INT_MAX])
def test_several_refused_batches_come_again_in_order(bench: LogBench, first: int, is_known: bool) -> None:
    """Sequences after the highest one begin again at 0."""
    if is_known:
        _send(bench, first - 1)
    sequences = [(first + place) & INT_MAX for place in range(4)]
    for sequence in sequences[:2]:
        _refuse(bench, sequence)
    for sequence in sequences[1:]:
        _refused(bench, ErrorCode.NOT_ENOUGH_REPLICAS, sequence)
    assert not _send(bench, sequences[0]).duplicate
    _refused(bench, ErrorCode.NOT_ENOUGH_REPLICAS, sequences[3])
    for sequence in sequences[1:]:
        assert not _send(bench, sequence).duplicate
    assert len(bench.log.producers.refused) == 0
    _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (sequences[3] + 2) & INT_MAX)


def test_what_is_behind_a_refused_batch_that_was_given_up_is_out_of_order(bench: LogBench) -> None:
    _send(bench, 0)
    _refuse(bench, 1)
    for _ in range(refused_batches.WAITING_MAX):
        _refused(bench, ErrorCode.NOT_ENOUGH_REPLICAS, 2)
    _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2)
    # One that sends it again and again waits for as long as it has to.
    for _ in range(refused_batches.WAITING_MAX + 1):
        _refuse(bench, 1)
        _refused(bench, ErrorCode.NOT_ENOUGH_REPLICAS, 2)


def test_a_refused_batch_that_another_leader_has_written_is_not_missing(bench: LogBench) -> None:
    """What a follower appends counts as well."""
    _send(bench, 0)
    _refuse(bench, 1)
    for sequence in (1, 2):
        data = bench.batch(b"value", producer_id=7, producer_epoch=0, base_sequence=sequence).data
        start = struct.pack(">qii", sequence, len(data) - 12, 0)
        bench.log.append_as_follower(memoryview(bytearray(start + data[16:])))
    assert len(bench.log.producers.refused) == 0
    assert not _send(bench, 3).duplicate
    _refused(bench, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5)


def test_refused_batches_of_invented_producers_do_not_fill_the_memory(bench: LogBench) -> None:
    for producer_id in range(refused_batches.PRODUCERS_MAX + 10):
        batch = bench.batch(b"value", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        bench.log.producers.refuse(batch)
    assert len(bench.log.producers.refused) == refused_batches.PRODUCERS_MAX


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_batch_that_did_not_fit_is_given_up(tmp_path: Path, gives_up: bool) -> None:
    """The producer begins a new epoch; or it goes on without the batch, after a while."""
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    disk.fail("pwrite", errno.ENOSPC)
    _refused(bench, ErrorCode.KAFKA_STORAGE_ERROR, 0)
    disk.heal()
    if gives_up:
        bench.log.producers.expire(bench.clock.now_ms(), 1000)
        assert not _send(bench, 1).duplicate
    else:
        assert not _send(bench, 0, epoch=1).duplicate
        assert not _send(bench, 1, epoch=1).duplicate


# ---- producers that are too many


def test_invented_producer_ids_do_not_fill_the_memory(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "PRODUCERS_MAX", 100)
    bench.restart(clean=True)
    for number in range(50):
        _send(bench, number)
        for place in range(20):
            bench.append(b"x", producer_id=1000 + 20 * number + place, producer_epoch=0, base_sequence=5)
        assert len(bench.log.producers.entries) <= 100
    assert _send(bench, 49).duplicate, "a producer that goes on writing is not forgotten"


def test_a_replay_remembers_the_same_producers(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "PRODUCERS_MAX", 100)
    bench.restart(clean=True)
    for number in range(333):
        bench.append(b"x", producer_id=1000 + number, producer_epoch=0, base_sequence=0)
    before = set(bench.log.producers.entries)
    bench.restart(clean=False)
    assert set(bench.log.producers.entries) == before


def test_a_producer_with_an_open_transaction_is_not_forgotten(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "PRODUCERS_MAX", 100)
    bench.restart(clean=True)
    _send(bench, 0, transactional=True)
    for number in range(300):
        bench.append(b"x", producer_id=1000 + number, producer_epoch=0, base_sequence=0)
    assert 7 in bench.log.producers.entries
    assert list(bench.log.producers.ongoing.values()) == [7]
