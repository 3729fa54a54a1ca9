"""The compaction kernels, compiled and interpreted: the same and correct results, also for invalid bytes."""

from types import ModuleType
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import compaction as compiled
from barnabas.kernels import compaction_walk as compiled_walk
from barnabas.records.batch import HEADER_SIZE, crc_is_valid, iter_headers, read_header
from barnabas.records.builder import build_batch, read_records, rebuild_batch, seal

FORWARD_KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
ROOM = 1 << 14


plain = interpreted(compiled)
plain_walk = interpreted(compiled_walk)
both = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])
both_walks = pytest.mark.parametrize(
    ("kernel", "walk"), [(compiled, compiled_walk), (plain, plain_walk)], ids=["compiled", "interpreted"]
)

keys = st.none() | st.binary(max_size=20)
rows = st.lists(st.tuples(st.integers(0, 1 << 42), keys, keys, st.just([])), min_size=1, max_size=8)
edits = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3)


def memory(slots: int) -> memoryview:
    return memoryview(bytearray(24 * slots)).cast("Q")


def a_map(kernel: ModuleType, slots: int = 64, limit: int = 60) -> Any:
    return kernel.OffsetMap(memory(slots), FORWARD_KEY, limit)


def payload(records: list[Any]) -> memoryview:
    return memoryview(bytes(build_batch(records))[HEADER_SIZE:])


def keyed(*names: bytes) -> list[Any]:
    return [(0, name, b"value", []) for name in names]


def edited(data: memoryview, changes: list[tuple[int, int]]) -> memoryview:
    out = bytearray(data)
    for place, byte in changes:
        out[place % len(out)] = byte
    return memoryview(bytes(out))


@both
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (8, None),
        (15, None),
    ],
)
def test_keys_are_hashed_with_siphash_128(kernel: ModuleType, size: int, expected: str | None) -> None:
    """Two sizes have published test vectors; for the others both forms only have to agree."""
    hashes = []
    for module in (kernel, compiled):
        table = memory(7)
        offsets = module.OffsetMap(table, FORWARD_KEY, 6)
        assert offsets.learn(payload(keyed(bytes(range(size)))), 1, 41, 0) == module.ALL_FIT
        place = next(place for place in range(0, 21, 3) if table[place + 2])
        assert table[place + 2] == 42
        hashes.append((table[place].to_bytes(8, "little") + table[place + 1].to_bytes(8, "little")).hex())
    assert hashes[0] == hashes[1]
    assert expected in (None, hashes[0])


@both
def test_the_newest_offset_of_a_key_is_known(kernel: ModuleType) -> None:
    offsets = a_map(kernel)
    assert offsets.learn(payload(keyed(b"a", b"b", b"a")), 3, 100, 0) == kernel.ALL_FIT
    newest = [offsets.get(memoryview(name)) for name in (b"a", b"b", b"c")]
    assert newest == [102, 101, -1]
    assert offsets.used() == 2


@both
def test_a_full_map_returns_the_first_offset_that_did_not_fit(kernel: ModuleType) -> None:
    offsets = a_map(kernel, slots=3, limit=2)
    assert offsets.learn(payload(keyed(b"a", b"b", b"a", b"c", b"d")), 5, 10, 0) == 13
    assert offsets.get(memoryview(b"a")) == 12
    assert offsets.get(memoryview(b"c")) == -1


@both
def test_records_below_the_start_and_without_key_are_not_learned(kernel: ModuleType) -> None:
    offsets = a_map(kernel)
    data = payload([*keyed(b"a", b"b"), (0, None, b"value", [])])
    assert offsets.learn(data, 3, 0, 1) == kernel.ALL_FIT
    assert (offsets.get(memoryview(b"a")), offsets.get(memoryview(b"b")), offsets.used()) == (-1, 1, 1)


@both
def test_a_map_needs_a_free_entry(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="more entries"):
        kernel.OffsetMap(memory(3), FORWARD_KEY, 3)


@both
def test_a_map_with_one_free_entry_finds_all_keys(kernel: ModuleType) -> None:
    offsets = a_map(kernel, slots=40, limit=39)
    names = [b"key-%d" % number for number in range(39)]
    assert offsets.learn(payload(keyed(*names)), 39, 0, 0) == kernel.ALL_FIT
    assert [offsets.get(memoryview(name)) for name in names] == list(range(39))
    assert offsets.get(memoryview(b"another")) == -1


@given(rows, rows, st.integers(0, 1 << 40), st.integers(0, 8), edits)
def test_learning_agrees(
    first: list[Any], second: list[Any], base: int, limit: int, changes: list[tuple[int, int]]
) -> None:
    results = []
    for module in (compiled, plain):
        table = memory(limit + 2)
        offsets = module.OffsetMap(table, FORWARD_KEY, limit + 1)
        answers = [
            offsets.learn(payload(first), len(first), base, base),
            offsets.learn(edited(payload(second), changes), len(second), base + 100, base),
        ]
        results.append((answers, offsets.used(), table.tolist()))
    assert results[0] == results[1]


@given(rows, st.integers(-1, 20), st.booleans(), LONGS, edits)
def test_filtering_agrees(
    records: list[Any], latest: int, keep: bool, shift: int, changes: list[tuple[int, int]]
) -> None:
    results = []
    for module in (compiled, plain):
        offsets = a_map(module)
        offsets.learn(payload(records), len(records), 0, 0)
        out = memoryview(bytearray(ROOM))
        data = edited(payload(records), changes)
        answer = offsets.filter(data, len(records), 0, latest, keep, shift, out)
        results.append((answer, bytes(out[: answer[1]])))
    assert results[0] == results[1]


@both
def test_a_filter_without_room_writes_nothing(kernel: ModuleType) -> None:
    data = payload(keyed(b"a"))
    out = memoryview(bytearray(len(data) + 5))
    assert a_map(kernel).filter(data, 1, 0, -1, True, 7, out)[0] == kernel.MALFORMED
    assert bytes(out) == bytes(len(out))


def expected_filter(batch: bytes, latest: int, keep: bool, base_timestamp: int) -> bytes:
    """The records that stay, written by the other encoder with timestamps relative to `base_timestamp`."""
    records = read_records(batch)
    newest = {record.key: record.offset for record in records if record.key is not None}
    stay = [
        record
        for record in records
        if record.offset > latest
        or (
            record.key is not None
            and record.offset >= newest[record.key]
            and (record.value is not None or keep)
        )
    ]
    header = read_header(batch)._replace(base_timestamp=base_timestamp)
    return bytes(rebuild_batch(header, stay))[HEADER_SIZE:]


@given(rows, st.integers(-1, 9), st.booleans(), st.integers(0, 1 << 50))
def test_filtering_keeps_the_newest_records(
    records: list[Any], latest: int, keep: bool, horizon: int
) -> None:
    batch = bytes(build_batch(records))
    offsets = a_map(compiled)
    offsets.learn(memoryview(batch)[HEADER_SIZE:], len(records), 0, 0)
    for base_timestamp in (records[0][0], horizon):
        out = bytearray(ROOM)
        shift = records[0][0] - base_timestamp
        kept, size, tombstones, highest = offsets.filter(
            memoryview(batch)[HEADER_SIZE:], len(records), 0, latest, keep, shift, out
        )
        assert bytes(out[:size]) == expected_filter(batch, latest, keep, base_timestamp)
        header = read_header(batch)._replace(base_timestamp=base_timestamp, count=kept)
        filtered = read_records(seal(header, out[:size]))
        assert tombstones == sum(record.value is None for record in filtered)
        assert not filtered or highest + base_timestamp == max(record.timestamp for record in filtered)


@st.composite
def windows(draw: st.DrawFn) -> tuple[bytes, int]:
    """Batches of several kinds one after the other, and their next offset."""
    data, offset = b"", draw(st.integers(0, 1 << 40))
    for records in draw(st.lists(rows, max_size=4)):
        batch = build_batch(
            records,
            base_offset=offset,
            compression=draw(st.sampled_from([0, 0, 0, 4])),
            transactional=draw(st.sampled_from([False, False, True])),
            log_append_time=draw(st.sampled_from([None, 77])),
            delete_horizon=draw(st.sampled_from([None, 50, 1 << 41])),
        )
        data += batch
        offset += len(records) + draw(st.integers(0, 3))
    return data, offset


@given(windows(), edits, st.integers(0, 80), st.booleans())
def test_walking_agrees(
    window: tuple[bytes, int], changes: list[tuple[int, int]], cut: int, stays: bool
) -> None:
    data = memoryview(window[0])[: len(window[0]) - cut]
    if len(data):
        data = edited(data, changes)
    retained = {header.last_offset for _, header in iter_headers(window[0])} if stays else set()
    results = []
    for module, walk in ((compiled, compiled_walk), (plain, plain_walk)):
        offsets = a_map(module, 8, 7)
        target = memoryview(bytearray(len(data)))
        learned = walk.index_batches(offsets, data, 0, 0, crc32c)
        skimmed = walk.skim_batches(offsets, data, target, 0, 0, window[1], 100, retained, crc32c)
        results.append((learned, skimmed, bytes(target[: skimmed[2]])))
    assert results[0] == results[1]


@both_walks
def test_a_skimmed_batch_is_valid_and_loses_only_old_records(kernel: ModuleType, walk: ModuleType) -> None:
    records = [(5, b"a", b"old", []), (9, b"b", b"only", []), (3, b"a", b"new", [])]
    window = memoryview(
        bytes(build_batch(records, base_offset=7, producer_id=4, base_sequence=2, leader_epoch=3))
    )
    offsets = a_map(kernel)
    assert walk.index_batches(offsets, window, 0, 0, crc32c) == (walk.END, len(window), 0)
    target = memoryview(bytearray(len(window)))
    reason, place, filled, last = walk.skim_batches(offsets, window, target, 0, 0, 9, 0, set(), crc32c)
    assert (reason, place, last) == (walk.END, len(window), 0)
    batch = bytes(target[:filled])
    header, before = read_header(batch), read_header(window)
    assert crc_is_valid(batch, 0, header.size)
    assert header.size == filled
    changed = {"length", "crc", "count"}
    kept_fields = {name for name in header._fields if getattr(header, name) == getattr(before, name)}
    assert set(header._fields) - kept_fields == changed
    assert [(record.offset, record.value) for record in read_records(batch)] == [(8, b"only"), (9, b"new")]


@both_walks
def test_a_flipped_bit_is_found(kernel: ModuleType, walk: ModuleType) -> None:
    good = bytes(build_batch(keyed(b"a", b"b")))
    target = memoryview(bytearray(len(good)))
    for place in range(17, len(good)):
        bad = bytearray(good)
        bad[place] ^= 0x80
        offsets = a_map(kernel)
        window = memoryview(bytes(bad))
        learned = walk.index_batches(offsets, window, 0, 0, crc32c)[0]
        skimmed = walk.skim_batches(offsets, window, target, 0, 0, -1, 0, set(), crc32c)[0]
        assert (learned, skimmed) == (walk.BROKEN, walk.BROKEN), place
