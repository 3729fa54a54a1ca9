"""Checks whether the indexes of a segment agree with it.

An index is a hint that the broker checks and rebuilds, so a wrong entry costs time but no records."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.log import names

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")

# Position, offset, description.
Fault = tuple[int, int, str]


def check_indexes(log: Path, base: int, batches: Mapping[int, tuple[int, int]]) -> Iterator[Fault]:
    """Wrong entries of .index and .timeindex; `batches` are (last offset, highest timestamp) by position."""
    index = log.with_suffix(names.INDEX)
    for relative, position in _entries(index, _OFFSET_ENTRY):
        last_offset = batches.get(position, (None, 0))[0]
        if last_offset != base + relative:
            actual = "no batch begins" if last_offset is None else f"a batch ends with offset {last_offset}"
            yield (
                position,
                base + relative,
                f"{index.name} has offset {base + relative} at byte {position}, where {actual}",
            )
    time_index = log.with_suffix(names.TIME_INDEX)
    times = dict(batches.values())
    newest = -1
    for timestamp, relative in _entries(time_index, _TIME_ENTRY):
        offset = base + relative
        if times.get(offset) != timestamp:
            known = times.get(offset)
            actual = "no batch ends" if known is None else f"the highest timestamp is {known}"
            yield 0, offset, f"{time_index.name} has time {timestamp} for offset {offset}, where {actual}"
        elif timestamp < newest:
            yield 0, offset, f"{time_index.name} has time {timestamp} after {newest}"
        newest = max(newest, timestamp)


def _entries(path: Path, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    """The entries of an index; none if there is no file. A preallocated file ends with zeros."""
    if not path.exists():
        return
    data = path.read_bytes()
    for number, values in enumerate(entry.iter_unpack(data[: len(data) - len(data) % entry.size])):
        if number and not any(values):
            return
        yield values
