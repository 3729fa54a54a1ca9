"""The batch kernels, compiled and interpreted: equal answers, on hostile bytes too, and never a wild read."""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import Shaped, interpreted

from barnabas.kernels import batches as compiled
from barnabas.kernels import record_append as compiled_encode
from barnabas.kernels import record_decode as compiled_decode
from barnabas.records.batch import HEADER_SIZE
from barnabas.records.builder import build_batch

ANY_TIME = (-(1 << 63), (1 << 63) - 1, False)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


plain = interpreted(compiled)
plain_encode = interpreted(compiled_encode)
plain_decode = interpreted(compiled_decode)

optional_bytes = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3)
rows = st.lists(
    st.tuples(st.integers(-1, 1 << 42), optional_bytes, optional_bytes, headers), min_size=1, max_size=8
)


def walked(kernel, data, count, base, limits=ANY_TIME, position=0):
    """What a walk over all records gives: (error, index, position, timestamp, index of that timestamp)."""
    walk = kernel.RecordWalk(count, base, *limits, position)
    error = walk.run(Shaped(data) if kernel is plain else data)
    return error, walk.index, walk.position, walk.timestamp, walk.timestamp_index


def outcome(function: object, *arguments: object) -> object:
    try:
        return function(*arguments)  # type: ignore[operator]
    except ValueError as error:
        return str(error)


def mutate(data: bytes, edits: list[tuple[int, int]]) -> bytes:
    out = bytearray(data)
    for place, byte in edits:
        out[place % len(out)] = byte
    return bytes(out)


edits = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4)


def test_the_kernel_under_test_is_the_compiled_one():
    assert str(compiled.__file__).endswith(".so")
    assert str(compiled_decode.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


@given(rows, edits, st.integers(0, 10), LONGS, st.booleans())
def test_walks_agree_on_valid_and_on_mangled_records(records, changes, count, base, keyed):
    data = mutate(bytes(compiled_encode.encode_records(records, 1000)), changes)
    limits = (0, 1 << 41, keyed)
    assert walked(compiled, data, count, base, limits) == walked(plain, data, count, base, limits)


@given(
    st.lists(
        st.tuples(st.integers(-70, 70) | st.integers(-9000, 9000), optional_bytes, st.binary(max_size=300)),
        min_size=1,
        max_size=300,
    ),
    st.none() | st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)),
)
def test_the_fast_path_for_short_records_gives_the_same_result(records, change):
    """Records with headers never take the fast path; the same records without them have the same result."""
    base = 10_000
    short = [(base + delta, key, value, []) for delta, key, value in records]
    facts = walked(compiled, bytes(compiled_encode.encode_records(short, base)), len(short), base)
    close = [(time, key, value, [("name", b"")]) for time, key, value, _ in short]
    data = bytes(compiled_encode.encode_records(close, base))
    assert (facts[0], facts[3:]) == (0, walked(compiled, data, len(close), base)[3:])
    if change is not None:
        # Both forms find a damaged record among short ones, at the same place.
        data = mutate(bytes(compiled_encode.encode_records(short, base)), [change])
        assert walked(compiled, data, len(short), base) == walked(plain, data, len(short), base)


@given(st.binary(max_size=60), st.integers(0, 5), LONGS)
def test_walks_agree_on_any_bytes(data, count, base):
    assert walked(compiled, data, count, base) == walked(plain, data, count, base)


@given(rows, edits, LONGS, LONGS)
def test_searches_for_a_timestamp_agree(records, changes, base, target):
    data = mutate(bytes(compiled_encode.encode_records(records, 1000)), changes)
    arguments = (0, len(records), base, target)
    assert compiled.find_timestamp(data, *arguments) == plain.find_timestamp(Shaped(data), *arguments)


@given(st.lists(rows, max_size=3), edits, LONGS, st.integers(0, 200))
def test_batch_scans_agree(contents, changes, target, position):
    parts = [bytes(build_batch(records, base_offset=10 * place)) for place, records in enumerate(contents)]
    data = mutate(b"".join(parts) + b"tail", changes)
    assert compiled.find_offset(data, target) == plain.find_offset(Shaped(data), target)
    assert compiled.next_batch(data, position) == plain.next_batch(Shaped(data), position)
    assert compiled.scan_batches(data, position) == plain.scan_batches(Shaped(data), position)


@given(rows, edits, st.integers(-1, 9))
def test_codecs_agree_on_valid_and_on_mangled_records(records, changes, count):
    encoded = compiled_encode.encode_records(records, 5)
    assert encoded == plain_encode.encode_records(records, 5)
    data = mutate(bytes(encoded), changes)
    arguments = (data, 0, count, 5, 7)
    assert outcome(compiled_decode.decode_records, *arguments) == outcome(
        plain_decode.decode_records, *arguments
    )


@given(st.binary(max_size=40), st.integers(0, 5), st.integers(-2, 50))
def test_decoders_agree_on_any_bytes(data, count, position):
    arguments = (data, position, count, 0, 0)
    assert outcome(compiled_decode.decode_records, *arguments) == outcome(
        plain_decode.decode_records, *arguments
    )


@given(rows, st.integers(0, 1 << 40))
def test_decoding_gives_back_what_was_encoded(records, base):
    data = bytes(compiled_encode.encode_records(records, base))
    assert compiled_decode.decode_records(data, 0, len(records), base, 100) == [
        (key, value, list(pairs), timestamp, 100 + place)
        for place, (timestamp, key, value, pairs) in enumerate(records)
    ]


def test_records_keep_the_offsets_they_are_given():
    data = bytes(compiled_encode.encode_records([(1, b"k", None, ()), (2, None, b"v", ())], 1, [3, 9]))
    assert [row[4] for row in compiled_decode.decode_records(data, 0, 2, 1, 100)] == [103, 109]


def test_header_names_that_are_not_utf8_survive():
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    data = bytes(compiled_encode.encode_records([(0, None, None, [(name, None)])], 0))
    assert b"\xff\xfe" in data
    assert compiled_decode.decode_records(data, 0, 1, 0, 0)[0][2] == [(name, None)]


def test_a_walk_finds_the_first_record_with_the_highest_timestamp():
    data = bytes(
        compiled_encode.encode_records([(5, None, b"", ()), (9, None, b"", ()), (9, None, b"", ())], 5)
    )
    assert walked(compiled, data, 3, 5) == (0, 3, len(data), 9, 1)


def test_walk_resumes_after_a_refused_record():
    data = bytes(
        compiled_encode.encode_records([(0, b"k", b"", ()), (0, None, b"", ()), (0, b"k", b"", ())], 0)
    )
    for kernel in (compiled, plain):
        walk = kernel.RecordWalk(3, 0, *ANY_TIME[:2], True)
        assert (walk.run(Shaped(data)), walk.index) == (11, 2)
        assert (walk.run(Shaped(data)), walk.index) == (0, 3)


def test_walk_of_a_large_buffer_without_the_interpreter_lock_gives_the_same():
    records = [(place, None, b"x" * 1000, ()) for place in range(200)]
    data = bytes(compiled_encode.encode_records(records, 0))
    assert len(data) > 65536
    assert walked(compiled, data, 200, 0) == (0, 200, len(data), 199, 199)


def test_walk_refuses_to_start_before_the_buffer():
    with pytest.raises(ValueError, match="before the buffer"):
        compiled.RecordWalk(1, 0, *ANY_TIME, -1)


def record(body: bytes) -> bytes:
    return bytes([2 * len(body)]) + body


@pytest.mark.parametrize(
    ("data", "count", "error"),
    [
        (b"", 1, 1),  # nothing there
        (b"\x0c\x00\x00\x00\x01\x01", 1, 1),  # six bytes announced, five there
        (b"\x0a\x00\x00\x00\x01\x01", 1, 1),  # too short for any record
        (b"\x80\x80\x80\x80\x80\x00", 1, 1),  # a length of six bytes
        (b"\x80\x80\x80\x80\x10" + b"\x00" * 9, 1, 1),  # a length of more than 32 bits
        (record(b"\x00" + b"\xff" * 9 + b"\x02\x00\x01\x01\x00"), 1, 2),  # more than 64 bits
        (record(b"\x00" + b"\xff" * 10 + b"\x01"), 1, 2),  # eleven bytes
        (record(b"\x00\x00\x02\x01\x01\x00"), 1, 3),  # offset delta 1 at place 0
        (record(b"\x00\x00\x00\x03\x01\x00"), 1, 4),  # key length -2
        (record(b"\x00\x00\x00\x14\x01\x00"), 1, 4),  # key beyond the record
        (record(b"\x00\x00\x00\x01\x03\x00"), 1, 5),  # value length -2
        (record(b"\x00\x00\x00\x01\x14\x00"), 1, 5),  # value beyond the record
        (record(b"\x00\x00\x00\x01\x01\x01"), 1, 6),  # header count -1
        (record(b"\x00\x00\x00\x01\x01\x04\x00\x01\x00"), 1, 6),  # two headers in three bytes
        (record(b"\x00\x00\x00\x01\x01\x02\x01\x01"), 1, 7),  # header without a name
        (record(b"\x00\x00\x00\x01\x01\x02\x14\x01"), 1, 7),  # name beyond the record
        (record(b"\x00\x00\x00\x01\x01\x02\x00\x03"), 1, 7),  # header value length -2
        (record(b"\x00\x00\x00\x01\x01\x02\x00\x14"), 1, 7),  # header value beyond the record
        (record(b"\x00\x00\x00\x01\x01\x00\x00"), 1, 8),  # a byte left in the record
        (record(b"\x00\x00\x00\x01\x01\x00") + b"\x00", 1, 9),  # a byte left after the records
        (record(b"\x00" + b"\xfe" + b"\xff" * 8 + b"\x01\x00\x01\x01\x00"), 1, 10),  # 2^63 - 1 later
    ],
)
def test_every_fault_of_a_record_has_its_number(data, count, error):
    assert walked(compiled, data, count, 1000)[0] == error
    assert walked(plain, data, count, 1000)[0] == error


@pytest.mark.parametrize(("timestamp", "error"), [(9, 12), (10, 0), (20, 0), (21, 12), (-1, 0), (-2, 12)])
def test_timestamps_are_held_to_the_limits_and_none_is_always_let_through(timestamp, error):
    data = bytes(compiled_encode.encode_records([(timestamp, None, None, ())], timestamp))
    assert walked(compiled, data, 1, timestamp, (10, 20, False))[0] == error


def three_batches() -> bytes:
    first = build_batch([(1, None, b"a", ()), (2, None, b"b", ())], base_offset=5)
    second = build_batch([(7, None, b"c", ())], base_offset=7)
    third = build_batch([(9, None, b"d", ())], base_offset=20)
    return bytes(first + second + third)


@pytest.mark.parametrize(
    ("target", "batch"),
    [(-9, 0), (0, 0), (5, 0), (6, 0), (7, 1), (8, 2), (20, 2), (21, None), ((1 << 63) - 1, None)],
)
def test_find_offset_finds_the_first_batch_that_ends_at_or_after_it(target, batch):
    data = three_batches()
    batches = compiled.scan_batches(data, 0)
    expected = (-1, len(data)) if batch is None else batches[batch][:2]
    assert compiled.find_offset(data, target) == expected


def test_a_scan_returns_each_batch_and_stops_at_a_torn_one():
    data = three_batches()
    batches = compiled.scan_batches(data, 0)
    assert [row[2:] for row in batches] == [(5, 1, 2), (7, 0, 7), (20, 0, 9)]
    assert batches[0][0] == 0
    assert compiled.scan_batches(data[:-1], 0) == batches[:2]
    assert compiled.scan_batches(data, batches[1][0]) == batches[1:]


def test_next_batch_distinguishes_a_torn_batch_from_a_corrupt_one():
    data = bytes(build_batch([(1, None, b"a", ())], base_offset=5))
    assert compiled.next_batch(data, 0) == (len(data), 5, 0, 1)
    assert compiled.next_batch(data[:-1], 0)[0] == 0
    assert compiled.next_batch(data[:16], 0)[0] == 0
    assert compiled.next_batch(data, len(data))[0] == 0
    assert compiled.next_batch(data, -1)[0] == 0
    for place, byte in ((16, 1), (8, 255), (11, HEADER_SIZE - 13), (0, 128)):
        broken = bytearray(data)
        broken[place] = byte
        assert compiled.next_batch(broken, 0)[0] == -1


def fields_of(batch):
    if batch is None:
        return None
    names = ("size", "count", "last_offset_delta", "max_timestamp", "max_timestamp_delta", "attributes")
    return [getattr(batch, name) for name in (*names, "producer_id", "producer_epoch", "base_sequence")]


@given(
    rows,
    edits,
    st.tuples(st.integers(0, 1 << 43), st.integers(0, 1 << 43), st.booleans(), st.integers(60, 1000)),
    st.integers(0, 1 << 42),
    st.booleans(),
)
def test_both_forms_agree_on_which_batches_are_plain(records, changes, rules, now_ms, is_sealed):
    data = bytearray(build_batch(records, producer_id=7, producer_epoch=1, base_sequence=3))
    data = bytearray(mutate(bytes(data), changes))
    if is_sealed:
        data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4)
    checked = compiled.check_plain(memoryview(data), compiled.PlainRules(*rules), now_ms)
    assert fields_of(checked) == fields_of(plain.check_plain(Shaped(data), plain.PlainRules(*rules), now_ms))


def test_a_plain_batch_is_described_by_its_fields():
    records = [(5, b"a", b"1", ()), (9, b"b", b"2", ()), (9, b"c", b"3", ())]
    data = memoryview(build_batch(records, producer_id=7, producer_epoch=1, base_sequence=3))
    rules = compiled.PlainRules(100, 100, True, 1000)
    assert fields_of(compiled.check_plain(data, rules, 0)) == [len(data), 3, 2, 9, 1, 0, 7, 1, 3]
    damaged = bytearray(data)
    damaged[-1] ^= 1
    assert compiled.check_plain(memoryview(damaged), rules, 0) is None
