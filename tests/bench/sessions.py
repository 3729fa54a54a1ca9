"""Fetch sessions: frames of many partitions, and the load that fetches in a session and without one."""

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench import frames
from tests.bench.connection import Connection, check_produced
from tests.bench.loads import Target

NO_SESSION, FINAL_EPOCH = 0, -1
FETCH_BYTES_MAX = 50 << 20
PARTITION_BYTES_MAX = 1 << 20


def fetch_request(topic: str, offsets: Mapping[int, int], session: int, epoch: int) -> bytes:
    """Fetch v12 of these partitions, which does not wait."""
    body = struct.pack(">iiiibii", -1, 0, 1, FETCH_BYTES_MAX, 0, session, epoch)
    if offsets:
        body += b"\x02" + frames.compact_string(topic) + frames.uvarint(len(offsets) + 1)
        for partition, offset in offsets.items():
            body += struct.pack(">iiqiqi", partition, -1, offset, -1, -1, PARTITION_BYTES_MAX) + b"\0"
        body += b"\0"
    else:
        body += b"\x01"
    return frames.frame(frames.FETCH, 12, body + b"\x01\x01\0", flexible=True)


def read_fetched(answer: memoryview) -> tuple[int, dict[int, int]]:
    """The session, and the first offset of what came for each partition that is in the answer."""
    error, session = struct.unpack_from(">hi", answer, 4 + 4 + 1 + 4)
    if error:
        raise RuntimeError(f"fetch was answered with error {error}")
    topics, position = frames.read_uvarint(answer, 4 + 4 + 1 + 4 + 2 + 4)
    first_offsets: dict[int, int] = {}
    for _ in range(topics - 1):
        length, position = frames.read_uvarint(answer, position)
        count, position = frames.read_uvarint(answer, position + length - 1)
        for _ in range(count - 1):
            partition, first, position = _read_partition(answer, position)
            first_offsets[partition] = first
        position += 1
    return session, first_offsets


def _read_partition(answer: memoryview, position: int) -> tuple[int, int, int]:
    partition, error = struct.unpack_from(">ih", answer, position)
    if error:
        raise RuntimeError(f"partition {partition} was answered with error {error}")
    aborted, position = frames.read_uvarint(answer, position + 4 + 2 + 8 + 8 + 8)
    assert aborted <= 1, "no transactions here"
    size, position = frames.read_uvarint(answer, position + 4)
    first = int(struct.unpack_from(">q", answer, position)[0]) if size > 1 else -1
    position += max(0, size - 1)
    if answer[position]:
        raise RuntimeError(f"partition {partition} has tagged fields, which were not requested")
    return partition, first, position + 1


@dataclass(frozen=True, slots=True)
class SessionTimes:
    session_seconds: list[float]
    sessionless_seconds: list[float]


def fetch_changes(target: Target, topic: str, partitions: int, changing: int, rounds: int) -> SessionTimes:
    """Each round `changing` partitions get a record and all are fetched, in a session, later without."""
    offsets = dict.fromkeys(range(partitions), 0)
    with Connection(target.bootstrap) as writer, Connection(target.bootstrap) as reader:
        session, _ = read_fetched(reader.ask(fetch_request(topic, offsets, NO_SESSION, 0)))
        if not session:
            raise RuntimeError("the broker gave no fetch session")
        changes = Changes(writer, topic, offsets, changing)
        within: list[float] = []
        last: Sequence[int] = ()
        for turn in range(rounds):
            changed = changes.make(turn)
            moved = {partition: offsets[partition] for partition in last}
            within.append(changes.time_fetch(reader, fetch_request(topic, moved, session, turn + 1), changed))
            last = changed
        without = []
        for turn in range(rounds, 2 * rounds):
            changed = changes.make(turn)
            request = fetch_request(topic, offsets, NO_SESSION, FINAL_EPOCH)
            without.append(changes.time_fetch(reader, request, changed))
    return SessionTimes(within, without)


class Changes:
    """Writes records to some partitions, different ones each time, and keeps the offsets to fetch next."""

    def __init__(self, writer: Connection, topic: str, offsets: dict[int, int], changing: int) -> None:
        self._writer, self._topic, self._offsets, self._changing = writer, topic, offsets, changing
        self._batch = frames.value_batch(1)

    def make(self, turn: int) -> list[int]:
        count = len(self._offsets)
        changed = sorted({(turn * self._changing + number) % count for number in range(self._changing)})
        error_position = frames.produce_error_position(self._topic)
        for partition in changed:
            answer = self._writer.ask(frames.produce_request(self._topic, partition, self._batch))
            check_produced(answer, error_position, self._offsets[partition])
        return changed

    def time_fetch(self, reader: Connection, request: bytes, changed: Sequence[int]) -> float:
        """The seconds of a fetch that must return exactly what has changed."""
        start = time.perf_counter()
        answer = reader.ask(request)
        seconds = time.perf_counter() - start
        _, first_offsets = read_fetched(answer)
        arrived = {partition: first for partition, first in first_offsets.items() if first >= 0}
        if arrived != {partition: self._offsets[partition] for partition in changed}:
            raise RuntimeError(f"a fetch brought partitions {sorted(arrived)}, not {list(changed)}")
        for partition in changed:
            self._offsets[partition] += 1
        return seconds
