"""The bytes of appends and snapshots in ZooKeeper: lines of JSON, compressed if they are long.

The first line is a header: {"offset", "epoch", "id"} of an append, {"snapshot"} with the end offset of a
snapshot. Each further line is an array of records. An append that is too large for a node has a header with
"staged", and no records: they are in the parts of that name. Pure functions over bytes: no I/O."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from barnabas.metadata.records import MetadataRecord, UnknownRecord, records_from_json, records_to_json
from barnabas.metadata.store import RecordBatch, Snapshot, StoreError
from barnabas.metadata.zookeeper.layout import Staged

# A request to ZooKeeper may have 1 MB (jute.maxbuffer). The rest is for the other operations in the request.
PART_BYTES_MAX = 768 << 10
# A limit for damaged data: a snapshot of 100,000 partitions has about 20 MB.
_DOCUMENT_BYTES_MAX = 1 << 30
_COMPRESSED_FROM_BYTES = 2048
# So many records are encoded at a time, so that other threads get their turn.
_RECORDS_PER_LINE = 500
_JSON_START = b"{"


class DamagedDocument(StoreError):
    """A node of the metadata log cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One append as it is in its node; `staged` is set if its records are elsewhere."""

    offset: int
    epoch: int
    id: str
    records: tuple[MetadataRecord, ...] = ()
    staged: Staged | None = None

    @property
    def batch(self) -> RecordBatch:
        return RecordBatch(self.offset, self.records)


def encode_append(batch: RecordBatch, epoch: int, append_id: str) -> bytes:
    return _encode({"offset": batch.offset, "epoch": epoch, "id": append_id}, batch.records)


def encode_pointer(offset: int, epoch: int, append_id: str, staged: Staged) -> bytes:
    header = {"offset": offset, "epoch": epoch, "id": append_id, "staged": [staged.name, staged.parts]}
    return _encode(header, ())


def encode_snapshot(end_offset: int, records: Iterable[MetadataRecord]) -> bytes:
    return _encode({"snapshot": end_offset}, records)


def decode_append(data: bytes) -> Entry:
    header, records = _decode(data)
    try:
        staged = header.get("staged")
        return Entry(
            header["offset"],
            header["epoch"],
            header["id"],
            records,
            None if staged is None else Staged(*staged),
        )
    except (KeyError, TypeError) as error:
        raise DamagedDocument(f"an entry of the metadata log is damaged: {error!r}") from error


def decode_snapshot(data: bytes) -> Snapshot:
    header, records = _decode(data)
    if "snapshot" not in header:
        raise DamagedDocument("the snapshot of the metadata log is damaged: its header is missing")
    return Snapshot(header["snapshot"], records)


def split(data: bytes) -> list[bytes]:
    return [data[start : start + PART_BYTES_MAX] for start in range(0, len(data), PART_BYTES_MAX)]


def _encode(header: dict[str, Any], records: Iterable[MetadataRecord]) -> bytes:
    lines = [_dump(header)]
    lines.extend(_dump(records_to_json(chunk)) for chunk in _chunks(records))
    data = b"\n".join(lines)
    return zlib.compress(data, 1) if len(data) >= _COMPRESSED_FROM_BYTES else data


def _dump(value: object) -> bytes:
    # JSON escapes newlines in strings, so a line is always one value.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _chunks(records: Iterable[MetadataRecord]) -> Iterator[Sequence[MetadataRecord]]:
    iterator = iter(records)
    while chunk := tuple(islice(iterator, _RECORDS_PER_LINE)):
        yield chunk


def _decode(data: bytes) -> tuple[dict[str, Any], tuple[MetadataRecord, ...]]:
    try:
        if not data.startswith(_JSON_START):
            data = _decompress(data)
        header, *lines = data.split(b"\n")
        records: list[MetadataRecord] = []
        for line in lines:
            records.extend(records_from_json(json.loads(line)))
        fields: dict[str, Any] = json.loads(header)
        return fields, tuple(records)
    except UnknownRecord as error:
        raise StoreError(str(error)) from error
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise DamagedDocument(f"the metadata log in ZooKeeper is damaged: {error!r}") from error


def _decompress(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    plain = decompressor.decompress(data, _DOCUMENT_BYTES_MAX)
    if decompressor.unconsumed_tail or not decompressor.eof:
        raise ValueError("a compressed document is too large or incomplete")
    return plain
