"""Compares with the record code of other clients: we accept what they build, they read what we build."""

import struct
import warnings

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.batch import read_header
from barnabas.records.builder import build_batch, read_records, records_payload
from barnabas.records.validation import BatchRules, validate

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its own use of importlib.resources
    from kafka.errors import CorruptRecordError
    from kafka.record.default_records import DefaultRecordBatch as PythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder

CODECS = range(5)
# Without optional packages kafka-python only has the codecs of the standard library; aiokafka has all.
BUILDERS = [*((PythonBuilder, codec) for codec in (0, 1)), *((AioBuilder, codec) for codec in CODECS)]
READERS = [*((PythonBatch, codec) for codec in (0, 1)), *((AioBatch, codec) for codec in CODECS)]
NOW = 1_700_000_000_000
RULES = BatchRules(timestamp_after_max_ms=(1 << 63) - 1)
optional_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=6), st.none() | st.binary(max_size=10)), max_size=3)
new_records = st.lists(
    st.tuples(st.integers(0, 1 << 42), optional_bytes, optional_bytes, headers), min_size=1, max_size=12
)


def foreign_build(builder_class, records, codec):
    builder = builder_class(
        magic=2,
        compression_type=codec,
        is_transactional=True,
        producer_id=17,
        producer_epoch=3,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for place, (timestamp, key, value, pairs) in enumerate(records):
        builder.append(place, timestamp=timestamp, key=key, value=value, headers=pairs)
    return bytearray(builder.build())


def foreign_read(batch_class, data):
    batch = batch_class(bytes(data))
    assert batch.validate_crc()
    return [(row.offset, row.timestamp, row.key, row.value, list(row.headers)) for row in batch]


def our_read(data):
    return [(row.offset, row.timestamp, row.key, row.value, row.headers) for row in read_records(data)]


@pytest.mark.parametrize(("builder_class", "codec"), BUILDERS)
@given(records=new_records)
def test_what_they_build_is_accepted_and_read_the_same(builder_class, codec, records):
    data = foreign_build(builder_class, records, codec)
    before = bytes(data)
    checked = validate(memoryview(data), RULES, NOW)
    assert bytes(checked.data) == before, "a sound batch is stored as it came"
    assert (checked.producer_id, checked.producer_epoch, checked.base_sequence) == (17, 3, 5)
    assert checked.max_timestamp == max(record[0] for record in records)
    assert our_read(data) == [
        (place, timestamp, key, value, pairs) for place, (timestamp, key, value, pairs) in enumerate(records)
    ]


@pytest.mark.parametrize(("batch_class", "codec"), READERS)
@given(records=new_records, base_offset=st.integers(0, 1 << 40))
def test_what_we_build_they_read_the_same(batch_class, codec, records, base_offset):
    data = build_batch(records, compression=codec, base_offset=base_offset)
    assert foreign_read(batch_class, data) == our_read(data)


@given(records=new_records)
def test_uncompressed_batches_are_the_same_byte_for_byte(records):
    ours = build_batch(records, producer_id=17, producer_epoch=3, base_sequence=5, transactional=True)
    for builder_class in (PythonBuilder, AioBuilder):
        theirs = foreign_build(builder_class, records, 0)
        theirs[12:16] = ours[12:16]  # The leader epoch of a new batch has no meaning.
        assert theirs == ours


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_recompressed_batches_are_read_by_all(codec, target):
    records = [(NOW + place, b"key", b"some value " * 500, [("h", b"x")]) for place in range(30)]
    data = foreign_build(AioBuilder, records, codec)
    checked = validate(data, BatchRules(target_compression=target), NOW)
    expected = our_read(data)
    assert foreign_read(AioBatch, checked.data) == expected
    if target in ("uncompressed", "gzip"):
        assert foreign_read(PythonBatch, checked.data) == expected


@pytest.mark.parametrize("batch_class", [PythonBatch, AioBatch])
def test_log_append_time_is_read_by_all(batch_class):
    data = foreign_build(PythonBuilder, [(NOW, b"k", b"v", []), (NOW + 1, b"k", b"v", [])], 0)
    checked = validate(data, BatchRules(log_append_time=True), NOW + 500)
    batch = batch_class(bytes(checked.data))
    assert batch.timestamp_type == 1
    assert [row.timestamp for row in batch] == [NOW + 500, NOW + 500]


def has_high_attributes(data):
    """Whether a record has an attribute byte above 127: both clients would read it as a varint."""
    payload = bytes(records_payload(data, read_header(data)))
    position = 0
    while position < len(payload):
        size = shift = 0
        while payload[position] & 0x80:
            size |= (payload[position] & 0x7F) << shift
            shift += 7
            position += 1
        size |= payload[position] << shift
        if payload[position + 1] & 0x80:
            return True
        position += 1 + size // 2
    return False


edits = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 7)), min_size=1, max_size=3)


@pytest.mark.parametrize(("batch_class", "codec"), READERS)
@given(records=new_records, changes=edits)
def test_flipped_bits_under_a_right_crc_are_refused_or_read_alike_by_all(
    batch_class, codec, records, changes
):
    data = build_batch(records, compression=codec)
    for place, bit in changes:
        data[21 + place % (len(data) - 21)] ^= 1 << bit
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    try:
        checked = validate(memoryview(data), RULES, NOW)
    except KafkaError as error:
        assert error.code in {
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
            ErrorCode.INVALID_TIMESTAMP,
            ErrorCode.MESSAGE_TOO_LARGE,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        }
        return
    if has_high_attributes(checked.data):
        return
    try:
        theirs = foreign_read(batch_class, checked.data)
    except (CorruptRecordError, UnicodeDecodeError) as error:
        # A broker accepts header names that are not UTF-8; these clients do not.
        assert isinstance(error, UnicodeDecodeError) or "UnicodeDecodeError" in str(error)
        return
    assert our_read(checked.data) == theirs
