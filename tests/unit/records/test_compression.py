"""The codecs: round trips, frames that other libraries can read, and a limit for decompressed data."""

import struct
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
MEGABYTE = 1 << 20
LZ4_HEADER = bytes.fromhex("04224d18604082")
ZSTD_HEADER = bytes.fromhex("28b52ffd0088")  # no content size, a window of 128 MiB
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def zstd_block(kind: int, size: int, content: bytes, last: bool = False) -> bytes:
    return struct.pack("<I", last | kind << 1 | size << 3)[:3] + content


def refused(codec: int, data: bytes, bytes_max: int = MEGABYTE) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        decompress(codec, data, bytes_max)
    return caught.value.code


@pytest.mark.parametrize("codec", [NONE, *CODECS])
@given(data=st.binary(max_size=300), times=st.integers(0, 500))
def test_round_trip(codec, data, times):
    whole = data * times
    assert decompress(codec, compress(codec, whole), MEGABYTE) == whole


@pytest.mark.parametrize(
    ("codec", "level"),
    [(GZIP, -1), (GZIP, 1), (GZIP, 9), (LZ4, 1), (LZ4, 9), (LZ4, 17), (ZSTD, -5), (ZSTD, 22)],
)
def test_round_trip_at_every_kind_of_level(codec, level):
    whole = bytes(range(256)) * 1000
    assert decompress(codec, compress(codec, whole, level), MEGABYTE) == whole


def test_a_higher_level_makes_lz4_smaller():
    words = b" ".join(b"%d" % (number * number * 7919 % 1009 * (number % 61)) for number in range(10_000))
    assert len(compress(LZ4, words, 17)) < len(compress(LZ4, words))


def test_lz4_frames_have_independent_blocks_and_incompressible_ones_are_stored():
    noise = b"".join(struct.pack(">Q", pow(3, number, 2**64 - 59)) for number in range(10_000))
    packed = compress(LZ4, noise)
    assert packed[4] & 0x20, "Java reads independent blocks only"
    assert len(packed) < len(noise) + 40
    assert bytes(cramjam.lz4.decompress(packed)) == noise


def test_snappy_has_the_framing_of_java_and_raw_snappy_is_read_too():
    whole = b"abc" * 30_000
    packed = compress(SNAPPY, whole)
    assert packed.startswith(XERIAL_HEADER)
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(whole)), MEGABYTE) == whole


def test_several_gzip_members_zstd_frames_and_lz4_frames_are_read_as_one():
    for codec in (GZIP, ZSTD, LZ4):
        assert decompress(codec, compress(codec, b"one ") + compress(codec, b"two"), 100) == b"one two"


def test_skippable_frames_are_skipped():
    skippable = struct.pack("<II", 0x184D2A53, 3) + b"abc"
    for codec in (ZSTD, LZ4):
        assert decompress(codec, skippable + compress(codec, b"data"), 100) == b"data"


def test_linked_lz4_blocks_are_read():
    whole = b"linked blocks " * 20_000
    assert decompress(LZ4, bytes(cramjam.lz4.compress(whole)), MEGABYTE) == whole


@pytest.mark.parametrize("codec", CODECS)
def test_data_of_exactly_the_limit_is_decompressed(codec):
    whole = b"x" * 300_000
    packed = compress(codec, whole)
    assert len(decompress(codec, packed, len(whole))) == len(whole)
    assert refused(codec, packed, len(whole) - 1) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_refused_both_ways(codec):
    assert refused(codec, b"data") == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    with pytest.raises(KafkaError, match="UNSUPPORTED_COMPRESSION_TYPE"):
        compress(codec, b"data")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"\x00", b"\xff" * 30, b"not compressed at all"])
def test_bytes_that_no_codec_wrote_are_corrupt(codec, data):
    if codec == SNAPPY and data == b"\x00":
        assert decompress(codec, data, 10) == b""
    else:
        assert refused(codec, data) in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_off_stream_is_refused(codec):
    whole = b"some text, some more text " * 20
    packed = compress(codec, whole)
    for size in range(len(packed)):
        if codec == SNAPPY and size in (0, len(XERIAL_HEADER)):
            continue
        assert refused(codec, packed[:size]) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", CODECS)
@given(
    edits=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=5),
    tail=st.binary(max_size=10),
)
def test_mangled_streams_raise_kafka_errors_only(codec, edits, tail):
    packed = bytearray(compress(codec, bytes(range(256)) * 40))
    for place, byte in edits:
        packed[place % len(packed)] = byte
    try:
        assert len(decompress(codec, bytes(packed) + tail, 20_000)) <= 20_000
    except KafkaError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(MEGABYTE)) for _ in range(64)) + packer.flush()


def zstd_bomb() -> bytes:
    return ZSTD_HEADER + zstd_block(1, 0x20000, b"a") * 5000 + zstd_block(1, 0x20000, b"a", last=True)


def lz4_bomb() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(65536), store_size=False))
    return LZ4_HEADER + (struct.pack("<I", len(block)) + block) * 2000 + bytes(4)


def snappy_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(MEGABYTE)))
    return XERIAL_HEADER + (struct.pack(">i", len(block)) + block) * 64


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        (GZIP, gzip_bomb()),
        (ZSTD, zstd_bomb()),
        (LZ4, lz4_bomb()),
        (SNAPPY, snappy_bomb()),
        (SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(50)),  # declares 4 GiB
        (SNAPPY, XERIAL_HEADER + (struct.pack(">i", 1) + b"\x00") * 100_000),  # no output, but endless blocks
    ],
)
def test_bombs_are_refused_within_the_limit(codec, bomb):
    tracemalloc.start()
    try:
        assert refused(codec, bomb, MEGABYTE) == ErrorCode.MESSAGE_TOO_LARGE
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MEGABYTE


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (ZSTD, bytes.fromhex("28b52ffd00ff") + zstd_block(0, 0, b"", last=True)),  # a window of terabytes
        (ZSTD, bytes.fromhex("28b52ffde0") + struct.pack("<Q", 1 << 60) + zstd_block(1, 9, b"a", last=True)),
        (ZSTD, ZSTD_HEADER + zstd_block(3, 1, b"a", last=True)),  # a block of no known kind
        (LZ4, LZ4_HEADER + struct.pack("<I", 0x7FFFFFFF)),  # a block of 2 GiB
        (SNAPPY, XERIAL_HEADER + struct.pack(">i", -1)),
        (SNAPPY, XERIAL_HEADER + struct.pack(">i", 0)),
        (SNAPPY, b"\x82SNAPPY\x00" + struct.pack(">ii", 2, 1)),
        (SNAPPY, XERIAL_HEADER + struct.pack(">i", 50) + bytes(49)),
        (GZIP, zlib.compress(b"", wbits=31) * 1000),  # members without end
        (GZIP, b""),
        (ZSTD, b""),
        (LZ4, b""),
    ],
)
def test_impossible_frames_are_corrupt(codec, data):
    assert refused(codec, data) == ErrorCode.CORRUPT_MESSAGE


def test_many_small_frames_are_still_read():
    for codec in (ZSTD, LZ4):
        assert decompress(codec, compress(codec, b"ab") * 1000, MEGABYTE) == b"ab" * 1000
