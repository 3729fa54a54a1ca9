"""The bytes of the embedded store's file: frames of [length u32][crc32c u32][JSON payload], big-endian.

The first frame is the header. If its start offset is above 0, the second is the snapshot of that offset.
Header and snapshot are written to a new file that is synced and renamed, so they are never incomplete.
Every later frame is one append, which is synced before the next one begins, so only the last one can be
incomplete. An invalid frame is therefore an incomplete last frame if no valid frame follows it, and damage
otherwise. JSON has no zero bytes, so a config value of a user can never look like the start of a frame.
Pure functions over bytes: no I/O."""

import json
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c

from barnabas.metadata.records import records_from_json, records_to_json
from barnabas.metadata.store import RecordBatch, Snapshot, StoreError

FORMAT_VERSION = 1
_PREFIX_SIZE = 8
_PAYLOAD_START = b'{"'


class DamagedLog(StoreError):
    """The file is damaged, and cutting it would lose acknowledged changes."""


@dataclass(frozen=True, slots=True)
class Header:
    """`epoch` is the controller epoch at which the file was created."""

    cluster_id: str
    start_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds: each batch with its position in the file; `size` leaves out an incomplete frame."""

    header: Header
    snapshot: Snapshot | None
    batches: list[tuple[int, RecordBatch]]
    end_offset: int
    epoch: int
    base_size: int
    size: int


def _frame(payload: dict[str, Any]) -> bytes:
    data = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
    return len(data).to_bytes(4, "big") + crc32c(data).to_bytes(4, "big") + data


def header_frame(header: Header) -> bytes:
    return _frame(
        {
            "format": FORMAT_VERSION,
            "cluster_id": header.cluster_id,
            "start_offset": header.start_offset,
            "epoch": header.epoch,
        }
    )


def snapshot_frame(snapshot: Snapshot) -> bytes:
    return _frame({"snapshot": snapshot.end_offset, "records": records_to_json(snapshot.records)})


def batch_frame(batch: RecordBatch, epoch: int) -> bytes:
    return _frame({"offset": batch.offset, "epoch": epoch, "records": records_to_json(batch.records)})


def _payload_end(data: bytes, position: int) -> int | None:
    """Where the frame at `position` ends, or None when there is no valid frame."""
    start = position + _PREFIX_SIZE
    end = start + int.from_bytes(data[position : position + 4], "big")
    # Blocks that were never written look like a length of zero, and their checksum would match.
    if end == start or end > len(data):
        return None
    if crc32c(memoryview(data)[start:end]) != int.from_bytes(data[position + 4 : start], "big"):
        return None
    return end


def _valid_frame_after(data: bytes, position: int) -> int | None:
    payload = data.find(_PAYLOAD_START, position + _PREFIX_SIZE)
    while payload >= 0:
        candidate = payload - _PREFIX_SIZE
        if candidate > position and _payload_end(data, candidate) is not None:
            return candidate
        payload = data.find(_PAYLOAD_START, payload + 1)
    return None


def _first_payload(data: bytes, position: int, what: str) -> tuple[dict[str, Any], int]:
    end = _payload_end(data, position)
    if end is None:
        raise DamagedLog(
            f"the {what} of the metadata log is damaged at byte {position}; restore it from a backup"
        )
    payload: dict[str, Any] = json.loads(data[position + _PREFIX_SIZE : end])
    return payload, end


def _read_header(data: bytes) -> tuple[Header, int]:
    payload, end = _first_payload(data, 0, "header")
    version = payload.get("format")
    if version != FORMAT_VERSION:
        raise StoreError(
            f"the metadata log has format {version!r}; this version of Barnabas reads format {FORMAT_VERSION}"
        )
    return Header(payload["cluster_id"], payload["start_offset"], payload["epoch"]), end


def parse(data: bytes) -> Contents:
    """What the file holds, without an incomplete last frame. Raises DamagedLog for any other damage."""
    header, position = _read_header(data)
    snapshot: Snapshot | None = None
    batches: list[tuple[int, RecordBatch]] = []
    if header.start_offset:
        payload, position = _first_payload(data, position, "snapshot")
        snapshot = Snapshot(payload["snapshot"], records_from_json(payload["records"]))
    base_size, offset, epoch = position, header.start_offset, header.epoch
    while position < len(data):
        end = _payload_end(data, position)
        if end is None:
            break
        payload = json.loads(data[position + _PREFIX_SIZE : end])
        if payload["offset"] != offset:
            raise DamagedLog(
                f"the metadata log is damaged at byte {position}: expected offset {offset}, got "
                f"{payload['offset']}; restore it from a backup"
            )
        batch = RecordBatch(offset, records_from_json(payload["records"]))
        batches.append((position, batch))
        position, offset, epoch = end, batch.end_offset, payload["epoch"]
    _refuse_damage(data, position)
    return Contents(header, snapshot, batches, offset, epoch, base_size, position)


def _refuse_damage(data: bytes, position: int) -> None:
    valid = _valid_frame_after(data, position) if position < len(data) else None
    if valid is not None:
        raise DamagedLog(
            f"the metadata log is damaged at byte {position}, and there are valid records at byte {valid}; "
            "restore it from a backup"
        )
