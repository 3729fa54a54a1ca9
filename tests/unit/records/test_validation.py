"""The checks of a batch that a producer sends, one by one."""

import dataclasses
import struct
import threading

import pytest
from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.batch import BatchHeader, crc_is_valid, read_header
from barnabas.records.builder import build_batch, control_batch, read_records, seal
from barnabas.records.compression import compress
from barnabas.records.validation import (
    RECORD_ERRORS_MAX,
    BatchRules,
    ExpandsTooMuch,
    InvalidRecordError,
    trusted,
    validate,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000
RECORDS = [(NOW + place, b"key", b"value %d" % place, [("h", b"x")]) for place in range(10)]
CODECS = range(5)
COMPRESSION_TYPES = ["uncompressed", "gzip", "snappy", "lz4", "zstd"]


def changed(batch: bytearray, **fields: int) -> bytearray:
    """The batch with these header fields and a CRC that fits."""
    header = read_header(batch)._replace(**fields)
    out = bytearray(batch)
    struct.pack_into(">qiibIhiqqqhii", out, 0, *header)
    struct.pack_into(">I", out, 17, crc32c(memoryview(out)[21:]))
    return out


def refusal(data: bytes | bytearray, rules: BatchRules | None = None, now_ms: int = NOW) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        validate(memoryview(data), rules or BatchRules(), now_ms)
    return caught.value


def code_of(data: bytes | bytearray, rules: BatchRules | None = None) -> ErrorCode:
    return refusal(data, rules).code


@pytest.mark.parametrize("codec", CODECS)
def test_a_good_batch_passes_unchanged(codec):
    batch = build_batch(RECORDS, compression=codec, producer_id=4, producer_epoch=1, base_sequence=8)
    before = bytes(batch)
    checked = validate(memoryview(batch), BatchRules(), NOW)
    assert (checked.size, checked.count, checked.last_offset_delta) == (len(batch), 10, 9)
    assert (checked.max_timestamp, checked.max_timestamp_delta, checked.attributes) == (NOW + 9, 9, codec)
    assert (checked.producer_id, checked.producer_epoch, checked.base_sequence) == (4, 1, 8)
    assert bytes(checked.data) == before
    assert checked.data.obj is batch, "nothing was copied"


def test_read_only_data_is_copied_to_be_stamped():
    batch = bytes(build_batch(RECORDS))
    checked = validate(batch, BatchRules(), NOW)
    assert not checked.data.readonly
    assert checked.data == batch


@pytest.mark.parametrize("data", [b"", b"\x00" * 11])
def test_no_batch_at_all(data):
    assert code_of(data) == ErrorCode.INVALID_RECORD


def test_fewer_bytes_than_a_header_are_corrupt():
    assert code_of(b"\x00" * 60) == ErrorCode.CORRUPT_MESSAGE


def test_two_batches_and_trailing_bytes():
    batch = build_batch(RECORDS)
    assert code_of(batch + batch) == ErrorCode.INVALID_RECORD
    assert code_of(batch + b"\x00") == ErrorCode.INVALID_RECORD


def test_a_batch_that_is_cut_off_is_invalid():
    assert code_of(build_batch(RECORDS)[:-1]) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [-1, 0, 13, 14, 48, -(1 << 31)])
def test_a_length_below_a_header_is_corrupt(length):
    assert code_of(changed(build_batch(RECORDS), length=length)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("magic", "code"),
    [
        (0, ErrorCode.INVALID_RECORD),
        (1, ErrorCode.INVALID_RECORD),
        (3, ErrorCode.CORRUPT_MESSAGE),
        (-1, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_only_magic_two(magic, code):
    assert code_of(changed(build_batch(RECORDS), magic=magic)) == code


def test_a_base_offset_other_than_zero():
    assert code_of(build_batch(RECORDS, base_offset=1)) == ErrorCode.INVALID_RECORD


def test_a_batch_beyond_the_topics_size():
    batch = build_batch(RECORDS)
    assert validate(memoryview(batch), BatchRules(max_batch_bytes=len(batch)), NOW).size == len(batch)
    assert code_of(batch, BatchRules(max_batch_bytes=len(batch) - 1)) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_any_flipped_bit_is_caught_by_the_crc(codec):
    batch = build_batch(RECORDS, compression=codec)
    for place in range(17, len(batch)):
        batch[place] ^= 1 << place % 8
        assert code_of(batch) == ErrorCode.CORRUPT_MESSAGE
        batch[place] ^= 1 << place % 8


def test_the_crc_is_checked_before_anything_is_decompressed():
    batch = build_batch(RECORDS, compression=1)
    batch[70:] = bytes(len(batch) - 70)
    assert "CRC" in refusal(batch).message


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0},
        {"count": -1},
        {"count": 9},
        {"count": 11},
        {"last_offset_delta": 10},
        {"last_offset_delta": -1},
        {"count": 0, "last_offset_delta": -1},
        {"count": -5, "last_offset_delta": -6},
        {"count": 9, "last_offset_delta": 8},
        {"count": 11, "last_offset_delta": 10},
        {"count": 1 << 30, "last_offset_delta": (1 << 30) - 1},
        {"attributes": 0x20},
        {"producer_id": 5},
        {"producer_id": 5, "base_sequence": 0},
        {"producer_id": 5, "producer_epoch": 0},
    ],
)
@pytest.mark.parametrize("codec", [0, 3])
def test_impossible_header_fields(fields, codec):
    batch = build_batch(RECORDS, compression=codec)
    fields = {**fields, "attributes": fields.get("attributes", 0) | codec}
    error = refusal(changed(batch, **fields))
    assert error.code == ErrorCode.INVALID_RECORD
    assert not isinstance(error, InvalidRecordError)


def test_clients_cannot_send_markers():
    marker = control_batch(1, 0, producer_id=1, producer_epoch=0, timestamp=NOW)
    assert code_of(marker) == ErrorCode.INVALID_RECORD
    assert trusted(marker).count == 1


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_compression(codec):
    assert code_of(changed(build_batch(RECORDS), attributes=codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_malformed_compressed_data_is_corrupt(codec):
    header = read_header(build_batch(RECORDS, compression=codec))
    assert code_of(seal(header, b"\xf0\x7f neither frame nor stream")) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_too_large(codec):
    header = read_header(build_batch(RECORDS, compression=codec))
    bomb = seal(header, compress(codec, bytes(10_000_000)))
    rules = BatchRules(decompressed_bytes_max=1_000_000)
    assert code_of(bomb, rules) == ErrorCode.MESSAGE_TOO_LARGE


def single(body: bytes, codec: int) -> bytearray:
    """A batch of one record with the given body."""
    header = BatchHeader(0, 0, -1, 2, 0, codec, 0, NOW, NOW, -1, -1, -1, 1)
    return seal(header, compress(codec, bytes([2 * len(body)]) + body))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "body",
    [
        b"\x00\x00\x02\x01\x01\x00",  # offset delta 1
        b"\x00\x00\x00\x20\x01\x00",  # key beyond the record
        b"\x00\x00\x00\x01\x20\x00",  # value beyond the record
        b"\x00\x00\x00\x01\x01\x01",  # header count -1
        b"\x00\x00\x00\x01\x01\x02\x01\x01",  # null header name
        b"\x00\x00\x00\x01\x01\x00\x00",  # bytes left over
        b"\x00" + b"\xff" * 10 + b"\x00\x00\x01\x01\x00",  # overlong timestamp
    ],
)
def test_malformed_records_are_invalid(codec, body):
    error = refusal(single(body, codec))
    assert error.code == ErrorCode.INVALID_RECORD
    assert "record 0" in error.message


@pytest.mark.parametrize("codec", CODECS)
def test_record_attributes_are_accepted_as_in_kafka(codec):
    assert validate(memoryview(single(b"\x55\x00\x00\x01\x01\x00", codec)), BatchRules(), NOW).count == 1


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_refuses_records_without_a_key_and_lists_them(codec):
    records = [(NOW, None if place % 2 else b"k", b"v", ()) for place in range(6)]
    batch = build_batch(records, compression=codec)
    assert validate(memoryview(batch), BatchRules(), NOW).count == 6
    error = refusal(batch, BatchRules(compacted=True))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3, 5]
    assert "key" in error.record_errors[0][1]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("timestamp", "good"),
    [
        (NOW - 1000, True),
        (NOW - 1001, False),
        (NOW + HOUR, True),
        (NOW + HOUR + 1, False),
        (-1, True),
        (0, False),
    ],
)
def test_timestamps_must_be_within_the_limits_of_the_topic(codec, timestamp, good):
    batch = build_batch([(NOW, None, b"", ()), (timestamp, None, b"", ())], compression=codec)
    rules = BatchRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=HOUR)
    if good:
        assert validate(memoryview(batch), rules, NOW).count == 2
    else:
        error = refusal(batch, rules)
        assert isinstance(error, InvalidRecordError)
        assert error.code == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in error.record_errors] == [1]
    assert validate(memoryview(batch), dataclasses.replace(rules, log_append_time=True), NOW).count == 2


def test_without_limits_any_timestamp_is_accepted():
    rules = BatchRules(timestamp_after_max_ms=(1 << 63) - 1)
    for timestamp in (0, 1, 1 << 61):
        assert validate(build_batch([(timestamp, None, b"", ())]), rules, NOW).max_timestamp == timestamp


def test_one_bad_timestamp_among_missing_keys_makes_it_a_timestamp_error():
    records = [(NOW, None, b"", ()), (0, b"k", b"", ()), (NOW, None, b"", ())]
    error = refusal(build_batch(records), BatchRules(compacted=True, timestamp_before_max_ms=1000))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1, 2]


def test_a_malformed_record_after_a_refused_one_is_the_error():
    batch = build_batch([(NOW, None, b"", ()), (NOW, b"k", b"", ())])
    batch[-1] = 1
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    error = refusal(batch, BatchRules(compacted=True))
    assert error.code == ErrorCode.INVALID_RECORD
    assert not isinstance(error, InvalidRecordError)


def test_the_list_of_refused_records_has_a_limit():
    batch = build_batch([(NOW, None, b"", ())] * (RECORD_ERRORS_MAX + 50))
    error = refusal(batch, BatchRules(compacted=True))
    assert isinstance(error, InvalidRecordError)
    assert len(error.record_errors) == RECORD_ERRORS_MAX


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrong_max_timestamp_is_corrected(codec):
    batch = changed(
        build_batch([*RECORDS, (NOW - 5, None, b"", ())], compression=codec), max_timestamp=NOW + 99
    )
    checked = validate(memoryview(batch), BatchRules(), NOW)
    assert (checked.max_timestamp, checked.max_timestamp_delta) == (NOW + 9, 9)
    assert read_header(checked.data).max_timestamp == NOW + 9
    assert crc_is_valid(checked.data, 0, checked.size)


def test_records_without_timestamps_have_no_max():
    checked = validate(build_batch([(-1, None, b"", ())] * 3), BatchRules(), NOW)
    assert (checked.max_timestamp, checked.max_timestamp_delta) == (-1, 2)


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_stamps_the_batch(codec):
    batch = build_batch(RECORDS, compression=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    checked = validate(memoryview(batch), BatchRules(log_append_time=True), NOW + 777)
    header = read_header(checked.data)
    assert header.is_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (NOW, NOW + 777)
    assert (checked.max_timestamp, checked.max_timestamp_delta, checked.attributes) == (
        NOW + 777,
        9,
        codec | 8,
    )
    assert crc_is_valid(checked.data, 0, checked.size)
    assert {record.timestamp for record in read_records(checked.data)} == {NOW + 777}


def test_log_append_time_from_a_producer_is_refused_if_the_broker_sets_it():
    error = refusal(build_batch(RECORDS, log_append_time=NOW), BatchRules(log_append_time=True))
    assert isinstance(error, InvalidRecordError)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == 10


def test_log_append_time_from_a_producer_is_ignored_if_producers_set_the_time():
    checked = validate(build_batch(RECORDS, log_append_time=NOW + 50), BatchRules(), NOW)
    header = read_header(checked.data)
    assert not header.is_log_append_time
    assert header.max_timestamp == NOW + 9
    assert crc_is_valid(checked.data, 0, checked.size)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("log_append_time", [False, True])
def test_a_batch_gets_the_topics_compression(codec, target, log_append_time):
    batch = build_batch(
        RECORDS, compression=codec, producer_id=3, producer_epoch=2, base_sequence=1, transactional=True
    )
    rules = BatchRules(target_compression=COMPRESSION_TYPES[target], log_append_time=log_append_time)
    checked = validate(memoryview(bytearray(batch)), rules, NOW + 50)
    header = read_header(checked.data)
    flags = 0x10 | (8 if log_append_time else 0)
    assert header.attributes == checked.attributes == target | flags
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 2, 1)
    assert header.size == checked.size == len(checked.data)
    assert crc_is_valid(checked.data, 0, checked.size)
    expected = [
        record._replace(timestamp=NOW + 50) if log_append_time else record for record in read_records(batch)
    ]
    assert read_records(checked.data) == expected
    assert not checked.data.readonly


def test_a_batch_that_is_too_large_after_recompression_is_refused():
    batch = build_batch([(NOW, b"k", bytes(5000), ())], compression=4)
    rules = BatchRules(max_batch_bytes=1000, target_compression="uncompressed")
    assert code_of(batch, rules) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("flag", [0x40, 0x80, 0x100, 0x4000])
def test_bits_that_kafka_ignores_are_accepted(flag):
    assert validate(changed(build_batch(RECORDS), attributes=flag), BatchRules(), NOW).attributes == flag


def test_rules_come_from_the_topics_config():
    config = TopicConfig(
        max_message_bytes=100_000_000,
        cleanup_compact=True,
        message_timestamp_type="LogAppendTime",
        message_timestamp_before_max_ms=5,
        message_timestamp_after_max_ms=6,
        compression_type="zstd",
        compression_zstd_level=7,
    )
    assert BatchRules.of(config) == BatchRules(100_000_000, True, True, 5, 6, "zstd", 7, 1_600_000_000)
    assert BatchRules.of(TopicConfig()) == BatchRules()
    assert BatchRules.of(TopicConfig(compression_type="snappy")).compression_level is None


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec])
def test_a_batch_that_expands_to_much_is_left_for_a_thread_unchanged(codec):
    bomb = build_batch([(NOW, b"k", bytes(1_000_000), ())], compression=codec)
    assert len(bomb) < 100_000
    before = bytes(bomb)
    with pytest.raises(ExpandsTooMuch):
        validate(memoryview(bomb), BatchRules(), NOW, 64 * 1024)
    assert bytes(bomb) == before
    assert validate(memoryview(bomb), BatchRules(), NOW, 2_000_000).count == 1
    assert validate(memoryview(bomb), BatchRules(), NOW).count == 1


def test_a_batch_that_has_to_be_compressed_is_left_for_a_thread():
    rules = BatchRules(target_compression="lz4")
    small, large = (build_batch([(NOW, b"k", bytes(size), ())]) for size in (1000, 100_000))
    assert validate(memoryview(small), rules, NOW, 64 * 1024).attributes == 3
    with pytest.raises(ExpandsTooMuch):
        validate(memoryview(large), rules, NOW, 64 * 1024)
    assert validate(memoryview(large), rules, NOW).attributes == 3


def test_a_malformed_batch_is_refused_whatever_it_may_expand_to():
    batch = build_batch(RECORDS, compression=4)
    batch[70] ^= 0xFF
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4)
    with pytest.raises(KafkaError) as refused:
        validate(memoryview(batch), BatchRules(), NOW, 1 << 20)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


def test_threads_may_validate_at_the_same_time():
    batches = [
        build_batch([(NOW, b"k", b"%d" % place * 50_000, ())], compression=place % 5) for place in range(8)
    ]
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda batch=batch: counts.append(validate(batch, BatchRules(), NOW).count))
        for batch in batches
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1] * 8
