"""Prints a .log file: its batches, and on request their records."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from barnabas.cli.dump_log.decoding import Texts
from barnabas.errors import KafkaError
from barnabas.records.batch import (
    HEADER_SIZE,
    MAGIC,
    BatchHeader,
    crc_is_valid,
    last_sequence,
    read_header,
)
from barnabas.records.builder import COMMIT_MARKER, Record, read_marker, read_records

# Position, header, bytes.
Batch = tuple[int, BatchHeader, bytes]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass
class Dump:
    """How segments are printed, and what is wrong with them."""

    prints_data: bool
    is_deep: bool
    skips_metadata: bool
    bytes_max: int | None
    decode: Callable[[Record], Texts]
    damaged: bool = False
    gaps: dict[Path, list[tuple[int, int]]] = field(default_factory=dict)

    def print_gaps(self) -> None:
        """Print gaps between offsets. They are not damage: compaction leaves them."""
        for path, pairs in self.gaps.items():
            print(f"Non-consecutive offsets in {path.absolute()}", file=sys.stderr)
            for first, second in reversed(pairs):
                print(f"  {first} is followed by {second}", file=sys.stderr)


def batches_of(file: BinaryIO, start: int = 0, end: int | None = None) -> Iterator[Batch]:
    """The complete batches from `start` on, up to one with an invalid length."""
    size = os.fstat(file.fileno()).st_size
    end = size if end is None else min(end, size)
    position = start
    while position + HEADER_SIZE <= end:
        header = read_header(os.pread(file.fileno(), HEADER_SIZE, position))
        if header.size < HEADER_SIZE or position + header.size > end:
            return
        yield position, header, os.pread(file.fileno(), header.size, position)
        position += header.size


def dump_segment(path: Path, dump: Dump) -> None:
    print(f"Log starting offset: {int(path.stem)}")
    position = 0
    last_offset = -1
    with path.open("rb") as file:
        for at, header, data in batches_of(file, end=dump.bytes_max):
            valid = header.magic == MAGIC and crc_is_valid(data, 0, header.size)
            dump.damaged |= not valid
            print(_batch_line(at, header, valid))
            if dump.is_deep and valid:
                last_offset = _print_records(path, header, data, dump, last_offset)
            position = at + header.size
    trailing = path.stat().st_size - position
    if trailing > 0 and dump.bytes_max is None:
        dump.damaged = True
        print(f"Found {trailing} invalid bytes at the end of {path.name}")


def _batch_line(position: int, header: BatchHeader, valid: bool) -> str:
    horizon = f"OptionalLong[{header.base_timestamp}]" if header.has_delete_horizon else "OptionalLong.empty"
    codec = CODECS[header.compression] if header.compression < len(CODECS) else str(header.compression)
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_java(header.is_transactional)} "
        f"isControl: {_java(header.is_control)} deleteHorizonMs: {horizon} position: {position} "
        f"{_clock(header)}: {header.max_timestamp} size: {header.size} magic: {header.magic} "
        f"compresscodec: {codec} crc: {header.crc} isvalid: {_java(valid)}"
    )


def _java(flag: bool) -> str:
    return "true" if flag else "false"


def _clock(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _print_records(path: Path, header: BatchHeader, data: bytes, dump: Dump, last_offset: int) -> int:
    try:
        records = read_records(data)
    except KafkaError as error:
        dump.damaged = True
        print(f"| {error}")
        return last_offset
    for record in records:
        if last_offset >= 0 and record.offset != last_offset + 1:
            dump.gaps.setdefault(path, []).append((last_offset, record.offset))
        last_offset = record.offset
        print(_record_line(header, data, record, dump))
    return last_offset


def _record_line(header: BatchHeader, data: bytes, record: Record, dump: Dump) -> str:
    parts: list[str] = []
    if not dump.skips_metadata:
        parts.append(_metadata(header, data, record))
    if dump.prints_data and not header.is_control:
        key, value = dump.decode(record)
        if key is not None:
            parts.append(f"key: {key}")
        if value is not None:
            parts.append(f"payload: {value}")
    return f"| {' '.join(parts)}" if parts else ""


def _metadata(header: BatchHeader, data: bytes, record: Record) -> str:
    names = ",".join(name for name, _ in record.headers)
    sequence = last_sequence(header.base_sequence, record.offset - header.base_offset)
    text = (
        f"offset: {record.offset} {_clock(header)}: {record.timestamp} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{names}]"
    )
    if not header.is_control:
        return text
    marker = read_marker(data)
    if marker is None:
        return f"{text} controlType: UNKNOWN"
    kind = "COMMIT" if marker.kind == COMMIT_MARKER else "ABORT"
    return f"{text} endTxnMarker: {kind} coordinatorEpoch: {marker.coordinator_epoch}"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
