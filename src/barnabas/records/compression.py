"""The four codecs of record batches, with a limit on the size of decompressed data.

Before any output is allocated, the compressed frame itself shows how large its contents can be (block by
block for lz4 and zstd, declared for snappy); gzip does not show it and is read as a stream. A decompression
bomb costs no more memory than `bytes_max`. Compressed data can be read by Java and librdkafka: lz4 frames
have independent blocks, snappy has the framing of the Java library. Codecs: 0 none, 1 gzip, 2 snappy, 3 lz4,
4 zstd."""

import struct
import zlib
from collections.abc import Callable

import cramjam

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.batch import Buffer

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = {"uncompressed": NONE, "none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

_GZIP_LEVEL = 6
# Kafka's default. It selects the fast compressor; every other level selects the slow one.
_LZ4_LEVEL = 9
_ZSTD_LEVEL = 3

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024

_LZ4_MAGIC = 0x184D2204
_LZ4_HEADER = bytes.fromhex("04224d18604082")  # independent blocks of at most 64 KiB, no sizes or checksums
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x8000_0000

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_BLOCK_BYTES = 128 * 1024
_SKIPPABLE_MAGIC = 0x184D2A50
_GZIP_MEMBERS_MAX = 100
# A block or frame counts as at least this: a million empty ones must not take seconds.
_BLOCK_BYTES_MIN = 4096
_LITTLE_INT = struct.Struct("<I")
_BIG_INT = struct.Struct(">i")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress the data; without a level, the default level of the codec is used."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        gzip_level = _GZIP_LEVEL if level is None or level < 0 else level
        return bytes(cramjam.gzip.compress(data, level=gzip_level))
    if codec == SNAPPY:
        return _compress_snappy(memoryview(data))
    if codec == LZ4:
        return _compress_lz4(memoryview(data), level)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL if level is None else level))
    raise _unknown(codec)


def decompress(codec: int, data: Buffer, bytes_max: int) -> memoryview:
    """Decompress; raises CORRUPT_MESSAGE if the data is malformed, MESSAGE_TOO_LARGE beyond `bytes_max`."""
    view = memoryview(data)
    if codec == NONE:
        return view
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise _unknown(codec)
    try:
        return decompressor(view, bytes_max)
    except (cramjam.DecompressionError, zlib.error, struct.error, IndexError) as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the batch cannot be decompressed, its {NAMES[codec]} data is malformed: {error}",
        ) from None


def _unknown(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression type {codec}")


def _too_large(bytes_max: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the batch decompresses to more than {bytes_max} bytes, which is the limit",
    )


def _compress_snappy(data: memoryview) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        out += _BIG_INT.pack(len(block))
        out += block
    return bytes(out)


def _compress_lz4(data: memoryview, level: int | None) -> bytes:
    out = bytearray(_LZ4_HEADER)
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        if level is None or level == _LZ4_LEVEL:
            packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        else:
            packed = _lz4_block_at(block, level)
        if len(packed) < len(block):
            out += _LITTLE_INT.pack(len(packed))
            out += packed
        else:
            out += _LITTLE_INT.pack(len(block) | _LZ4_STORED)
            out += block
    out += _LITTLE_INT.pack(0)
    return bytes(out)


def _lz4_block_at(block: memoryview, level: int) -> bytes:
    """The block at this level. The library has levels for frames only, so the block is taken from a frame."""
    frame = bytes(cramjam.lz4.compress(block, level=level))
    start = len(_LZ4_HEADER) + (8 if frame[4] & 0x08 else 0)
    (size,) = _LITTLE_INT.unpack_from(frame, start)
    if size & _LZ4_STORED:
        return bytes(block)
    return frame[start + _LITTLE_INT.size : start + _LITTLE_INT.size + size]


def _decompress_gzip(data: memoryview, bytes_max: int) -> memoryview:
    out = b""
    rest: Buffer = data
    for _ in range(_GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(wbits=31)
        # One byte more than allowed shows whether the output ends exactly at the limit or continues.
        out += member.decompress(rest, bytes_max + 1 - len(out))
        if len(out) > bytes_max:
            raise _too_large(bytes_max)
        if not member.eof:
            raise zlib.error("the stream is cut off")
        rest = member.unused_data
        if not rest:
            return memoryview(out)
    raise zlib.error("the stream has too many members")


def _decompress_snappy(data: memoryview, bytes_max: int) -> memoryview:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        blocks = [data]
    else:
        blocks = _xerial_blocks(data, bytes_max)
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    total = sum(sizes)
    if total > bytes_max:
        raise _too_large(bytes_max)
    out = memoryview(bytearray(total))
    position = 0
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, out[position : position + size])
        position += size
    return out


def _xerial_blocks(data: memoryview, bytes_max: int) -> list[memoryview]:
    blocks: list[memoryview] = []
    position = len(_XERIAL_HEADER)
    if data[:position] != _XERIAL_HEADER:
        raise IndexError("the header is cut off or has an unknown version")
    while position < len(data):
        (size,) = _BIG_INT.unpack_from(data, position)
        position += _BIG_INT.size
        if size <= 0 or size > len(data) - position:
            raise IndexError("a block reaches beyond the data")
        if len(blocks) > bytes_max // _BLOCK_BYTES_MIN:
            raise _too_large(bytes_max)
        blocks.append(data[position : position + size])
        position += size
    return blocks


def _decompress_lz4(data: memoryview, bytes_max: int) -> memoryview:
    return _decompress_into(cramjam.lz4.decompress_into, data, _lz4_bound(data, bytes_max), bytes_max)


def _decompress_zstd(data: memoryview, bytes_max: int) -> memoryview:
    return _decompress_into(cramjam.zstd.decompress_into, data, _zstd_bound(data, bytes_max), bytes_max)


def _decompress_into(
    decompress_into: Callable[[memoryview, memoryview], int], data: memoryview, bound: int, bytes_max: int
) -> memoryview:
    out = memoryview(bytearray(min(bound, bytes_max)))
    try:
        size = decompress_into(data, out)
    except cramjam.DecompressionError:
        if bound > bytes_max:
            raise _too_large(bytes_max) from None
        raise
    return out[:size]


def _lz4_bound(data: memoryview, enough: int) -> int:
    """An upper limit of the decompressed size, from the block sizes; counts no further than `enough`."""
    position = bound = 0
    while position < len(data) and bound <= enough:
        (magic,) = _LITTLE_INT.unpack_from(data, position)
        bound += _BLOCK_BYTES_MIN
        if magic & 0xFFFF_FFF0 == _SKIPPABLE_MAGIC:
            position += 8 + _LITTLE_INT.unpack_from(data, position + 4)[0]
            continue
        if magic != _LZ4_MAGIC:
            raise IndexError("expected the start of a frame")
        flags, block_code = data[position + 4], data[position + 5] >> 4 & 7
        block_max = 1 << (8 + 2 * block_code)
        trailer = 4 if flags & 0x10 else 0
        position += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        while bound <= enough and (size := _LITTLE_INT.unpack_from(data, position)[0]):
            size &= ~_LZ4_STORED
            bound += max(_BLOCK_BYTES_MIN, min(block_max, 255 * size))
            position += 4 + size + trailer
        position += 4 + (4 if flags & 0x04 else 0)
    return bound


def _zstd_bound(data: memoryview, enough: int) -> int:
    """An upper limit of the decompressed size, from the block headers; counts no further than `enough`."""
    position = bound = 0
    while position < len(data) and bound <= enough:
        (magic,) = _LITTLE_INT.unpack_from(data, position)
        bound += _BLOCK_BYTES_MIN
        if magic & 0xFFFF_FFF0 == _SKIPPABLE_MAGIC:
            position += 8 + _LITTLE_INT.unpack_from(data, position + 4)[0]
            continue
        if magic != _ZSTD_MAGIC:
            raise IndexError("expected the start of a frame")
        position, size = _zstd_frame(data, position, enough - bound)
        bound += size
    return bound


def _zstd_frame(data: memoryview, position: int, enough: int) -> tuple[int, int]:
    """Position after the frame at `position`, and an upper limit of its decompressed size."""
    descriptor = data[position + 4]
    single_segment = descriptor >> 5 & 1
    content_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    position += 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_bytes
    bound = last = 0
    while not last and bound <= enough:
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        bound += _ZSTD_BLOCK_BYTES if kind == 2 else max(_BLOCK_BYTES_MIN, size)
        position += 3 + (1 if kind == 1 else size)
    return position + (4 if descriptor & 0x04 else 0), bound


_DECOMPRESSORS: dict[int, Callable[[memoryview, int], memoryview]] = {
    GZIP: _decompress_gzip,
    SNAPPY: _decompress_snappy,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
