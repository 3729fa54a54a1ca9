"""Kafka request frames built once, and the few fields of the answers that a driver must see.

Written by hand with struct: the broker under test must not be measured with its own codec."""

import struct
import time
from collections.abc import Sequence

from crc32c import crc32c

from barnabas.records.builder import build_batch

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 19, 20, 44
LATEST = -1
TOPIC_RESOURCE = 2
CLIENT_ID = b"bench"
RECORD_BYTES = 100
# A record of 100 bytes costs 107-109 bytes in a batch; 145 of them with the header are just under 16 KB.
RECORDS_IN_16K = 145
RECORDS_IN_1M = 9200


def value_batch(count: int) -> bytes:
    """A batch of records of 100 bytes without keys, with the current time, so that retention does not delete
    it."""
    timestamp_ms = int(time.time() * 1000)
    value = bytes(range(RECORD_BYTES))
    return bytes(build_batch([(timestamp_ms, None, value, ()) for _ in range(count)]))


def keyed_batch(first_key: int, count: int) -> bytes:
    """A batch of records whose keys are consecutive numbers."""
    timestamp_ms = int(time.time() * 1000)
    value = bytes(range(RECORD_BYTES - 16))
    keys = (b"%016d" % number for number in range(first_key, first_key + count))
    return bytes(build_batch([(timestamp_ms, key, value, ()) for key in keys]))


def stamp(batch: bytearray, timestamp_ms: int) -> None:
    """Give a batch another time: base and largest timestamp, and the checksum from the attributes on."""
    struct.pack_into(">qq", batch, 27, timestamp_ms, timestamp_ms)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def compact_string(text: str) -> bytes:
    return uvarint(len(text) + 1) + text.encode()


def uvarint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def read_uvarint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The number at the position and the position after it."""
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7


def frame(key: int, version: int, body: bytes, flexible: bool) -> bytes:
    header = struct.pack(">hhi", key, version, 1) + struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID
    payload = header + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(payload)) + payload


def metadata_request() -> bytes:
    """Metadata v4 of no topic: the brokers only."""
    return frame(METADATA, 4, struct.pack(">i?", 0, False), flexible=False)


def list_offsets_request(topic: str, partition: int, timestamp_ms: int) -> bytes:
    """ListOffsets v1 of one partition."""
    body = struct.pack(">ii", -1, 1) + _string(topic) + struct.pack(">iiq", 1, partition, timestamp_ms)
    return frame(LIST_OFFSETS, 1, body, flexible=False)


def listed_offset(topic: str, answer: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Error and offset in an answer to list_offsets_request: size, id, topic, partition, then these."""
    error, _, offset = struct.unpack_from(">hqq", answer, 4 + 4 + 4 + 2 + len(topic) + 4 + 4)
    return error, offset


def create_topic_request(topic: str, partitions: int, configs: Sequence[tuple[str, str]]) -> bytes:
    """CreateTopics v4."""
    body = struct.pack(">i", 1) + _string(topic) + struct.pack(">ihii", partitions, 1, 0, len(configs))
    for key, value in configs:
        body += _string(key) + _string(value)
    return frame(CREATE_TOPICS, 4, body + struct.pack(">i?", 30_000, False), flexible=False)


def delete_topic_request(topic: str) -> bytes:
    """DeleteTopics v3."""
    body = struct.pack(">i", 1) + _string(topic) + struct.pack(">i", 30_000)
    return frame(DELETE_TOPICS, 3, body, flexible=False)


def set_topic_config_request(topic: str, key: str, value: str) -> bytes:
    """IncrementalAlterConfigs v0, one SET."""
    body = struct.pack(">ib", 1, TOPIC_RESOURCE) + _string(topic)
    body += struct.pack(">i", 1) + _string(key) + b"\0" + _string(value) + b"\0"
    return frame(INCREMENTAL_ALTER_CONFIGS, 0, body, flexible=False)


def produce_request(topic: str, partition: int, batch: bytes) -> bytes:
    """Produce v11 (flexible, topics by name) with one batch, acks=all."""
    body = b"\0" + struct.pack(">hi", -1, 30_000)
    body += b"\x02" + compact_string(topic) + b"\x02" + struct.pack(">i", partition)
    body += uvarint(len(batch) + 1) + batch + b"\0\0\0"
    return frame(PRODUCE, 11, body, flexible=True)


def produce_error_position(topic: str) -> int:
    """Where the error code is in an answer to produce_request: after size, id, tags, topic, partition."""
    return 4 + 4 + 1 + 1 + len(compact_string(topic)) + 1 + 4


class FetchRequest:
    """Fetch v12 (flexible, topics by name) of one partition, outside any session; only the offset changes."""

    def __init__(self, topic: str, partition: int, bytes_max: int, wait_ms: int) -> None:
        lead = struct.pack(">iiiibii", -1, wait_ms, 1, bytes_max + 65_536, 0, 0, -1)
        lead += b"\x02" + compact_string(topic) + b"\x02" + struct.pack(">ii", partition, -1)
        tail = struct.pack(">iqi", -1, -1, bytes_max) + b"\0" + b"\0" + b"\x01" + b"\x01" + b"\0"
        self.frame = bytearray(frame(FETCH, 12, lead + struct.pack(">q", 0) + tail, flexible=True))
        self._offset_position = len(self.frame) - len(tail) - 8
        # The answer: size, id, tags, throttle, error, session, topic, partition and its error.
        self._error_position = 4 + 4 + 1 + 4 + 2 + 4 + 1 + len(compact_string(topic)) + 1 + 4

    def at(self, offset: int) -> bytearray:
        struct.pack_into(">q", self.frame, self._offset_position, offset)
        return self.frame

    def records_size(self, answer: bytes | bytearray | memoryview) -> tuple[int, int]:
        """Size and position of the records in a whole answer; raises when the broker refused."""
        position = self._error_position
        (error,) = struct.unpack_from(">h", answer, position)
        if error:
            raise RuntimeError(f"fetch was answered with error {error}")
        position += 2 + 8 + 8 + 8
        aborted, position = read_uvarint(answer, position)
        assert aborted <= 1, "no transactions here"
        size, position = read_uvarint(answer, position + 4)
        return size - 1, position


def offset_after(records: memoryview, batch_bytes: int, batch_records: int, fetch_offset: int) -> int:
    """The offset after the last whole batch of a fetched slice. All batches have the same size and number of
    records, so checking two is enough: the first must have the fetched offset, and the last the offset that
    follows from the number of batches before it."""
    whole = len(records) // batch_bytes
    if not whole:
        raise RuntimeError(
            f"a fetch at offset {fetch_offset} brought {len(records)} bytes, less than a batch"
        )
    for number in (0, whole - 1):
        (base,) = struct.unpack_from(">q", records, number * batch_bytes)
        if base != fetch_offset + number * batch_records:
            raise RuntimeError(f"a fetch at offset {fetch_offset} has offset {base} in batch {number}")
    return fetch_offset + whole * batch_records
