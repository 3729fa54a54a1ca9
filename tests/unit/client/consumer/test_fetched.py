"""Reading fetched data: positions, aborted transactions, control batches, damage."""

from typing import Any

import pytest
from tests.unit.records.stamping import stamp

from barnabas.client.consumer.fetched import Fetched, Reading
from barnabas.client.consumer.records import ConsumerRecord
from barnabas.client.errors import ErrorCode, KafkaError, SerializationError
from barnabas.client.types import TopicPartition
from barnabas.records.arrow import RecordColumns
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, build_batch, control_batch
from barnabas.wire.messages.fetch import AbortedTransaction

PARTITION = TopicPartition("t", 0)


def batch(base: int, *values: bytes, **options: Any) -> bytes:
    rows = [(1000, None, value, ()) for value in values]
    return bytes(build_batch(rows, base_offset=base, leader_epoch=3, **options))


def marker(base: int, kind: int, producer_id: int) -> bytes:
    made = control_batch(kind, 0, producer_id=producer_id, producer_epoch=0, timestamp=5)
    stamp(made, 0, base, 3)
    return bytes(made)


def transactional(base: int, producer_id: int, *values: bytes) -> bytes:
    return batch(
        base, *values, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def fetched(data: bytes, offset: int = 0, aborted: Any = None, **reading: Any) -> Fetched:
    how = Reading(reading.pop("key", None), reading.pop("value", None), **reading)
    return Fetched(PARTITION, memoryview(data), offset, aborted, how)


def values(reading: Fetched, room: int = 100) -> list[Any]:
    out: list[ConsumerRecord] = []
    reading.take(out, room)
    return [record.value for record in out]


def test_records_are_taken_in_portions_from_the_position_on() -> None:
    reading = fetched(batch(10, b"a", b"b", b"c") + batch(13, b"d"), offset=11)
    assert reading.end_offset() == 14
    assert values(reading, 1) == [b"b"]
    assert (reading.next_offset, reading.is_done) == (12, False)
    assert values(reading) == [b"c", b"d"]
    assert (reading.next_offset, reading.is_done, reading.leader_epoch) == (14, True, 3)


def test_an_incomplete_batch_is_left_for_the_next_fetch() -> None:
    reading = fetched(batch(0, b"a") + batch(1, b"b")[:-1])
    assert reading.end_offset() == 1
    assert values(reading) == [b"a"]
    assert (reading.next_offset, reading.is_done) == (1, True)


@pytest.mark.parametrize("codec", range(5))
def test_all_codecs(codec: int) -> None:
    assert values(fetched(batch(0, b"a" * 50, b"b" * 50, compression=codec))) == [b"a" * 50, b"b" * 50]


LOG = (
    transactional(0, 7, b"aborted-1")
    + transactional(1, 8, b"kept-1")
    + marker(2, ABORT_MARKER, 7)
    + transactional(3, 7, b"kept-2")
    + marker(4, COMMIT_MARKER, 7)
    + marker(5, COMMIT_MARKER, 8)
    + transactional(6, 8, b"aborted-2")
    + batch(7, b"plain")
    + marker(8, ABORT_MARKER, 8)
)
ABORTED = [
    AbortedTransaction(producer_id=8, first_offset=6),
    AbortedTransaction(producer_id=7, first_offset=0),
]


def test_read_committed_leaves_out_aborted_records_only() -> None:
    reading = fetched(LOG, aborted=ABORTED, read_committed=True)
    assert values(reading) == [b"kept-1", b"kept-2", b"plain"]
    assert reading.next_offset == 9


def test_read_uncommitted_sees_all_but_the_markers() -> None:
    expected = [b"aborted-1", b"kept-1", b"kept-2", b"aborted-2", b"plain"]
    assert values(fetched(LOG)) == expected


def test_aborted_records_alone_still_move_the_position() -> None:
    reading = fetched(LOG[: len(transactional(0, 7, b"aborted-1"))], aborted=ABORTED, read_committed=True)
    assert values(reading) == []
    assert (reading.next_offset, reading.is_done) == (1, True)


def test_damage_is_reported_after_the_records_before_it_and_again() -> None:
    damaged = bytearray(batch(0, b"a") + batch(1, b"b"))
    damaged[-1] ^= 1
    reading = fetched(bytes(damaged))
    assert values(reading) == [b"a"]
    for _ in range(2):
        with pytest.raises(KafkaError, match="offset 1 does not match") as raised:
            values(reading)
        assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
    assert reading.next_offset == 1
    assert values(fetched(bytes(damaged), check_crcs=False))[0] == b"a"


def test_the_error_of_a_deserializer_names_the_partition_and_the_offset() -> None:
    def number(_: str, data: bytes | None) -> int:
        return int(data or b"")

    reading = fetched(batch(0, b"1", b"x", b"3"), value=number)
    assert values(reading) == [1]
    with pytest.raises(SerializationError, match="t-0 at or after offset 1"):
        values(reading)
    assert reading.next_offset == 1


def test_columns_are_read_from_where_the_records_ended() -> None:
    reading = fetched(LOG, aborted=ABORTED, read_committed=True)
    assert values(reading, 1) == [b"kept-1"]
    columns = RecordColumns()
    reading.take_columns(columns)
    assert columns.finish()["offset"].to_pylist() == [3, 7]
    assert reading.next_offset == 9


def test_records_are_read_from_where_the_columns_ended() -> None:
    reading = fetched(batch(0, b"a", b"b", b"c", b"d", compression=4))
    columns = RecordColumns(rows_max=2)
    assert values(reading, 1) == [b"a"]
    reading.take_columns(columns)
    assert columns.finish()["value"].to_pylist() == [b"b", b"c"]
    assert values(reading) == [b"d"]


def test_columns_report_damage_after_the_rows_before_it_and_again() -> None:
    damaged = bytearray(batch(0, b"a") + batch(1, b"b"))
    damaged[-1] ^= 1
    reading = fetched(bytes(damaged))
    columns = RecordColumns()
    reading.take_columns(columns)
    assert columns.count == 1
    for _ in range(2):
        with pytest.raises(KafkaError, match="t-0 at offset 1 does not match"):
            reading.take_columns(columns)
