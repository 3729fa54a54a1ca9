"""Appending to a batch, compiled and interpreted: the bytes are the same as those of encode_records."""

import time
from types import ModuleType
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import record_append as compiled
from barnabas.kernels.hashing import murmur2
from barnabas.kernels.record_append import encode_records
from barnabas.records.batch import ATTRIBUTES_POSITION, CRC, CRC_POSITION, HEADER, HEADER_SIZE

plain = interpreted(compiled)
MODULES = pytest.mark.parametrize("module", [compiled, plain], ids=["compiled", "interpreted"])

data = st.one_of(st.none(), st.binary(max_size=200))
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]
headers = st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=5), data), max_size=3))
records = st.lists(st.tuples(st.integers(0, 2**62), data, data, headers), min_size=1, max_size=200)


@given(records)
def test_the_bytes_are_those_of_the_codec(
    rows: list[Row],
) -> None:
    whole = [(timestamp, key, value, with_headers or []) for timestamp, key, value, with_headers in rows]
    expected = bytes(HEADER_SIZE) + encode_records(whole, rows[0][0])
    for module in (compiled, plain):
        batch = module.RecordBuffer(10**9)
        futures = [batch.append(*row) for row in rows]
        assert batch.data == expected
        assert (batch.count, batch.base_timestamp) == (len(rows), rows[0][0])
        assert batch.max_timestamp == max(row[0] for row in rows)
        for index, (future, (timestamp, key, value, _)) in enumerate(zip(futures, rows, strict=True)):
            assert (future.index, future.timestamp) == (index, timestamp)
            assert future.key_size == (-1 if key is None else len(key))
            assert future.value_size == (-1 if value is None else len(value))
            assert future.batch is batch


@given(records, st.integers(0, 600))
def test_only_the_first_record_may_exceed_the_capacity(rows: list[Row], capacity: int) -> None:
    kept: list[list[bool]] = []
    for module in (compiled, plain):
        batch = module.RecordBuffer(capacity)
        kept.append([batch.append(*row) is not None for row in rows])
        assert kept[-1][0]
        assert len(batch.data) <= capacity or batch.count == 1
        assert batch.count == sum(kept[-1])
    assert kept[0] == kept[1]


@MODULES
def test_a_closed_batch_refuses_records(module: ModuleType) -> None:
    batch = module.RecordBuffer(1000)
    assert batch.append(5, None, b"v") is not None
    before = bytes(batch.data)
    assert batch.close() is True
    assert batch.close() is False
    assert batch.append(6, None, b"w") is None
    assert (bytes(batch.data), batch.count, batch.max_timestamp) == (before, 1, 5)
    batch.forget_data()
    assert batch.data == b""


def test_a_failing_header_leaves_the_batch_as_it_was() -> None:
    for module in (compiled, plain):
        batch = module.RecordBuffer(1000)
        batch.append(5, None, b"v")
        before = bytes(batch.data)
        with pytest.raises((TypeError, AttributeError)):
            batch.append(5, None, b"v", [("name", 7)])
        assert (bytes(batch.data), batch.count) == (before, 1)


@MODULES
def test_the_bytes_can_be_read_while_a_batch_grows(module: ModuleType) -> None:
    batch = module.RecordBuffer(100_000)
    for count in range(1, 2000):
        batch.append(5, b"k", b"v" * 20)
        if count % 100 == 1:
            assert len(batch.data) == batch.size
    rows = [(5, b"k", b"v" * 20, [])] * 1999
    assert batch.data == bytes(HEADER_SIZE) + encode_records(rows, 5)


@MODULES
def test_a_batch_in_used_memory_is_as_in_new_memory(module: ModuleType) -> None:
    """The memory of a batch that is done becomes that of the next one, unless somebody still holds it."""
    for holds in (False, True):
        old = module.RecordBuffer(20_000)
        while old.size < 15_000:
            old.append(5, b"old", b"x" * 100)
        module.write_header(old.data, 0, old.count, 5, 5, 7, 8, 9)
        held = old.data if holds else None
        kept = bytes(old.data)
        old.forget_data()
        new = module.RecordBuffer(20_000)
        new.append(6, None, b"new")
        assert new.data == bytes(HEADER_SIZE) + encode_records([(6, None, b"new", [])], 6)
        assert held is None or held == kept


# ---- the way of most records


def sender_of(module: ModuleType, partitions: int = 3, capacity: int = 200) -> Any:
    """A sender for the topic t, whose `_send` only notes what it gets."""

    class Sender(module.PlainSender):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            batches = module.OpenBatches()
            batches.open = [module.RecordBuffer(capacity) for _ in range(partitions)]
            batches.sticky_open = batches.open[0]
            self._topics = {"t": batches}
            self._is_plain = True
            self.others: list[tuple[Any, ...]] = []

        def _send(self, *arguments: Any) -> str:
            self.others.append(arguments)
            return "sent otherwise"

    return Sender()


@MODULES
def test_plain_records_go_to_the_open_batches(module: ModuleType) -> None:
    sender = sender_of(module)
    before = time.time_ns() // 1_000_000
    future = sender.send("t", b"v")
    assert before <= future.timestamp <= time.time_ns() // 1_000_000
    open_batches = sender._topics["t"].open
    assert (future.batch, future.index, future.value_size) == (open_batches[0], 0, 1)
    for number in range(20):
        key = b"key %d" % number
        batch = open_batches[murmur2(key) % 3]
        count = batch.count
        sender.send("t", None, key)
        assert batch.count == count + 1
    assert sender.others == []


@MODULES
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("unknown", b"v"), {}),
        (("t", "text"), {}),
        (("t", b"v", 5), {}),
        (("t", bytearray(b"v")), {}),
        (("t", b"v" * 500), {}),
        (("t", b"v"), {"partition": 1}),
        (("t", b"v"), {"headers": None, "colour": 1}),
    ],
)
def test_other_records_go_the_long_way(
    module: ModuleType, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    sender = sender_of(module)
    sender.send("t", b"first")
    size = sender._topics["t"].open[0].size
    assert sender.send(*arguments, **options, on_delivery=print) == "sent otherwise"
    topic, value, key = (*arguments, None, None)[:3]
    assert sender.others == [(topic, value, key, options, print)]
    assert sender._topics["t"].open[0].size == size


@MODULES
def test_a_producer_that_is_not_plain_takes_the_long_way(module: ModuleType) -> None:
    sender = sender_of(module)
    sender._is_plain = False
    assert sender.send("t", b"v") == "sent otherwise"
    sender._is_plain = True
    sender._topics["t"].sticky_open = None
    assert sender.send("t", b"v") == "sent otherwise"
    assert sender._topics["t"].open[0].count == 0


@given(
    st.binary(max_size=300),
    st.integers(0, 0x3F),
    st.integers(1, 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
)
def test_the_header_is_that_of_the_layout(
    body: bytes, attributes: int, count: int, timestamp: int, producer: int, sequence: int
) -> None:
    epoch = min(producer, 32767)
    expected = bytearray(HEADER_SIZE) + body
    fields = (attributes, count - 1, timestamp, -1, producer, epoch, sequence, count)
    HEADER.pack_into(expected, 0, 0, len(expected) - 12, -1, 2, 0, *fields)
    CRC.pack_into(expected, CRC_POSITION, crc32c(bytes(expected[ATTRIBUTES_POSITION:])))
    for module in (compiled, plain):
        batch = bytearray(HEADER_SIZE) + body
        module.write_header(batch, attributes, count, timestamp, -1, producer, epoch, sequence)
        assert batch == expected


@MODULES
def test_a_header_needs_its_room(module: ModuleType) -> None:
    with pytest.raises(ValueError, match="a batch has at least 61 bytes, got 60"):
        module.write_header(bytearray(60), 0, 1, 0, 0, -1, -1, -1)
