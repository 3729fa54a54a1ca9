"""Lookups in a long log by offset and by time, and connections that never read; run in the driver."""

import contextlib
import random
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench import frames
from tests.bench.connection import Connection
from tests.bench.loads import Target, time_acknowledgements
from tests.bench.usage import resident_bytes

ACKNOWLEDGEMENTS = 3000
SETTLING_SECONDS = 2.0
# Small, so that the answer for a silent connection waits in the broker and not in the kernel.
SILENT_RECEIVE_BYTES = 4096


def look_up_offsets(target: Target, topic: str, batches: int, count: int) -> list[float]:
    """Fetch one batch each at offsets all over the log."""
    chance = random.Random(1)
    request = frames.FetchRequest(topic, 0, 1, wait_ms=0)
    batch_bytes = len(frames.value_batch(frames.RECORDS_IN_16K))
    latencies = []
    with Connection(target.bootstrap) as connection:
        for _ in range(count):
            offset = chance.randrange(batches) * frames.RECORDS_IN_16K
            frame = request.at(offset)
            start = time.perf_counter()
            answer = connection.ask(frame)
            latencies.append(time.perf_counter() - start)
            size, position = request.records_size(answer)
            records = answer[position : position + size]
            frames.offset_after(records, batch_bytes, frames.RECORDS_IN_16K, offset)
    return latencies


def look_up_times(target: Target, topic: str, batches: int, first_ms: int, count: int) -> list[float]:
    """ListOffsets by times all over the log; batches are a millisecond apart, so the answer is known."""
    chance = random.Random(2)
    latencies = []
    with Connection(target.bootstrap) as connection:
        for _ in range(count):
            number = chance.randrange(batches)
            request = frames.list_offsets_request(topic, 0, first_ms + number)
            start = time.perf_counter()
            answer = connection.ask(request)
            latencies.append(time.perf_counter() - start)
            error, offset = frames.listed_offset(topic, answer)
            if error or offset != number * frames.RECORDS_IN_16K:
                raise RuntimeError(f"time {number} was found at offset {offset}, error {error}")
    return latencies


@dataclass(frozen=True, slots=True)
class BesideSilent:
    alone_seconds: list[float]
    beside_seconds: list[float]
    resident_before: int
    resident_after: int


def hold_silent(target: Target, full: str, other: str, connections: int) -> BesideSilent:
    """This many connections request a megabyte and never read; another connection still gets its
    acknowledgements."""
    with Connection(target.bootstrap) as connection:
        alone = time_acknowledgements(connection, other, ACKNOWLEDGEMENTS, 5.0)
        before = resident_bytes(target.pid)
        with _silent(target, full, connections):
            time.sleep(SETTLING_SECONDS)
            beside = time_acknowledgements(connection, other, ACKNOWLEDGEMENTS, 30.0)
            after = resident_bytes(target.pid)
    return BesideSilent(alone, beside, before, after)


@contextlib.contextmanager
def _silent(target: Target, topic: str, connections: int) -> Iterator[None]:
    host, port = target.bootstrap.rsplit(":", 1)
    request = frames.FetchRequest(topic, 0, 1 << 20, wait_ms=0).at(0)
    with contextlib.ExitStack() as opened:
        for _ in range(connections):
            each = opened.enter_context(socket.socket())
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SILENT_RECEIVE_BYTES)
            each.settimeout(60)
            each.connect((host, int(port)))
            each.sendall(request)
        yield
