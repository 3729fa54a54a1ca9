"""Reading the fetched data: one partition after another, and errors only after the records before them."""

from typing import Any

import pytest

from barnabas.client.consumer.buffer_reader import BufferReader, table_of
from barnabas.client.consumer.fetched import Fetched, Reading
from barnabas.client.consumer.state import Assignments
from barnabas.client.errors import KafkaError
from barnabas.client.types import TopicPartition
from barnabas.records.builder import build_batch

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("u", 1)


def batch(base: int, *values: bytes) -> bytes:
    return bytes(build_batch([(1000, None, value, ()) for value in values], base_offset=base))


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 0xFF])


def reader_of(**fetched: list[bytes]) -> BufferReader:
    """A reader of t-0 and u-1, each with its fetched answers."""
    assignments = Assignments()
    assignments.replace((FIRST, SECOND))
    for state in assignments.states.values():
        state.move_to(0)
        offset = 0
        for data in fetched.get(state.partition.topic, []):
            answer = Fetched(state.partition, memoryview(data), offset, None, Reading(None, None))
            assignments.put(state, state.version, offset, answer)
            offset = answer.end_offset()
    return BufferReader(assignments)


def values(by_partition: Any) -> list[bytes]:
    return [record.value for records in by_partition.values() for record in records]


def test_records_of_all_partitions_up_to_the_limit() -> None:
    reader = reader_of(t=[batch(0, b"a", b"b"), batch(2, b"c")], u=[batch(0, b"x", b"y")])
    assert values(reader.records(4)) == [b"a", b"b", b"c", b"x"]
    assert values(reader.records(4)) == [b"y"]
    assert not reader.is_ready()


def test_rows_of_all_partitions_up_to_the_limit() -> None:
    reader = reader_of(t=[batch(0, b"a", b"b"), batch(2, b"c")], u=[batch(0, b"x", b"y")])
    table = table_of(reader.columns(4))
    assert table["value"].to_pylist() == [b"a", b"b", b"c", b"x"]
    assert table["topic"].to_pylist() == ["t", "t", "t", "u"]
    assert table["partition"].to_pylist() == [0, 0, 0, 1]
    assert table["headers"].to_pylist() == [[], [], [], []]
    assert table_of(reader.columns(4))["offset"].to_pylist() == [1]
    assert reader.columns(4) is None
    assert table_of(None).schema == table.schema
    assert reader.metrics(False)["records-consumed-total"] == 5


@pytest.mark.parametrize(
    "answers", [[batch(0, b"a") + damaged(batch(1, b"b"))], [batch(0, b"a"), damaged(batch(1, b"b"))]]
)
def test_damage_is_raised_after_all_records_before_it_were_returned(answers: list[bytes]) -> None:
    reader = reader_of(t=answers)
    assert values(reader.records(10)) == [b"a"]
    for _ in range(2):
        with pytest.raises(KafkaError, match="t-0 at offset 1"):
            reader.records(10)
    reader = reader_of(t=answers)
    assert table_of(reader.columns(10))["value"].to_pylist() == [b"a"]
    for _ in range(2):
        with pytest.raises(KafkaError, match="t-0 at offset 1"):
            reader.columns(10)
