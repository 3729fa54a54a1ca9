"""The index files of a .log file, and whether they match it."""

import argparse
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.dump_log.segments import Batch, batches_of
from barnabas.cli.failures import ToolError
from barnabas.records.builder import read_records

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class IndexFaults:
    """Entries that do not match the log, by kind and file; printed at the end, as in Kafka's tool."""

    def __init__(self) -> None:
        self._mismatches: dict[Path, list[str]] = {}
        self._timestamps: dict[Path, list[str]] = {}
        self._disorder: dict[Path, list[str]] = {}
        self._missing: dict[Path, list[str]] = {}

    @property
    def has_any(self) -> bool:
        return any((self._mismatches, self._timestamps, self._disorder, self._missing))

    def mismatch(self, path: Path, indexed: int, in_log: int) -> None:
        line = f"  Index offset: {indexed}, log offset: {in_log}"
        self._mismatches.setdefault(path, []).insert(0, line)

    def timestamp(self, path: Path, indexed: int, in_log: int) -> None:
        line = f"  Index timestamp: {indexed}, log timestamp: {in_log}"
        self._timestamps.setdefault(path, []).append(line)

    def disorder(self, path: Path, indexed: int, before: int) -> None:
        line = f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}"
        self._disorder.setdefault(path, []).append(line)

    def missing(self, path: Path, indexed: int, in_log: int) -> None:
        line = f"Indexed offset: {indexed}, found log offset: {in_log}"
        self._missing.setdefault(path, []).append(line)

    def print(self) -> None:
        for title, faults in (
            ("Mismatches in :", self._mismatches),
            ("Found timestamp mismatch in :", self._timestamps),
            ("Found out of order timestamp in :", self._disorder),
        ):
            for path, lines in faults.items():
                print(f"{title}{path.absolute()}", *lines, sep="\n", file=sys.stderr)
        for lines in self._missing.values():
            print(
                "The following indexed offsets are not found in the log.", *lines, sep="\n", file=sys.stderr
            )


def dump_index(path: Path, options: argparse.Namespace, faults: IndexFaults) -> None:
    base = int(path.stem)
    entries = list(_entries(path, _OFFSET_ENTRY))
    if not entries:
        print(f"{path} is empty.")
        return
    if options.index_sanity_check:
        _check_sanity(path, [offset for offset, _ in entries])
        return
    with path.with_suffix(".log").open("rb") as log:
        for number, (relative, position) in enumerate(entries):
            # A preallocated file ends with zeros.
            if relative == 0 and number > 0:
                return
            batch = next(batches_of(log, position), None)
            last_offset = -1 if batch is None else batch[1].last_offset
            if last_offset != base + relative:
                faults.mismatch(path, base + relative, last_offset)
            if not options.verify_index_only:
                print(f"offset: {base + relative} position: {position}")


def dump_time_index(path: Path, options: argparse.Namespace, faults: IndexFaults) -> None:
    base = int(path.stem)
    entries = list(_entries(path, _TIME_ENTRY))
    if options.index_sanity_check:
        _check_sanity(path, [offset for _, offset in entries])
        return
    before = -1
    with path.with_suffix(".log").open("rb") as log:
        batches = _Forward(batches_of(log))
        for number, (timestamp, relative) in enumerate(entries):
            if relative == 0 and number > 0:
                return
            offset = base + relative
            batch = batches.reaching(offset)
            if batch is None or batch[1].last_offset != offset:
                faults.missing(path, offset, -1 if batch is None else batch[1].last_offset)
            else:
                newest = max((record.timestamp for record in read_records(batch[2])), default=-1)
                if newest != timestamp:
                    faults.timestamp(path, timestamp, newest)
                if before >= timestamp:
                    faults.disorder(path, timestamp, before)
            if not options.verify_index_only:
                print(f"timestamp: {timestamp} offset: {offset}")
            before = timestamp


class _Forward:
    """Reads the batches only once: the requested offsets must be ascending."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self._current = next(batches, None)

    def reaching(self, offset: int) -> Batch | None:
        """The first batch whose last offset is not below `offset`."""
        while self._current is not None and self._current[1].last_offset < offset:
            self._current = next(self._batches, None)
        return self._current


def _entries(path: Path, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    data = path.read_bytes()
    if len(data) % entry.size:
        raise ToolError(
            f"{path} is corrupt: its size of {len(data)} bytes is not a multiple of {entry.size}. "
            "If you delete it, the broker rebuilds it."
        )
    yield from entry.iter_unpack(data)


def _check_sanity(path: Path, offsets: list[int]) -> None:
    if offsets and offsets[-1] < 0:
        raise ToolError(f"{path} is corrupt: its last offset is below its first.")
    print(f"{path} passed sanity check.")
