"""The loads, run in the driver's process: blocking sockets, a thread for each connection, frames built before
the clock starts. Every answer's error code and offset are checked."""

import contextlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.bench import frames
from tests.bench.connection import Connection, TlsConnection, check_produced
from tests.bench.usage import Load, Meter

IN_FLIGHT = 5
FETCH_EXTRA_BYTES = 1 << 17


@dataclass(frozen=True, slots=True)
class Target:
    """The broker under load: where it listens, and the process whose costs are counted. With a file of
    certificates to trust (`authority`), the listener is one with TLS."""

    bootstrap: str
    pid: int
    authority: str = ""

    def connect(self) -> Connection:
        return TlsConnection(self.bootstrap, self.authority) if self.authority else Connection(self.bootstrap)


@dataclass(frozen=True, slots=True)
class Limits:
    """A load ends at whichever comes first."""

    seconds: float
    bytes: int


def produce(target: Target, topic: str, records: int, limits: Limits, partitions: int = 1) -> Load:
    """One connection for each partition, IN_FLIGHT requests on each, until the limits are reached."""
    batch = frames.value_batch(records)
    requests = [frames.produce_request(topic, partition, batch) for partition in range(partitions)]
    share = max(1, limits.bytes // len(batch) // partitions)
    start_line = threading.Barrier(partitions + 1)
    with contextlib.ExitStack() as opened, ThreadPoolExecutor(partitions) as threads:
        pumps = [
            Pump(opened.enter_context(target.connect()), topic, request, records) for request in requests
        ]
        with Meter(target.pid) as meter:
            running = [threads.submit(pump.run, start_line, limits.seconds, share) for pump in pumps]
            start_line.wait()
            start = time.perf_counter()
            answered = sum(each.result() for each in running)
            seconds = time.perf_counter() - start
    return meter.load(answered, answered * len(batch), seconds)


class Pump:
    """One connection that keeps IN_FLIGHT requests in flight; the partition has no other producer."""

    def __init__(self, connection: Connection, topic: str, request: bytes, records: int) -> None:
        self._connection, self._request, self._records = connection, request, records
        self._error_position = frames.produce_error_position(topic)

    def run(self, start_line: threading.Barrier, seconds: float, count: int) -> int:
        connection, request, records = self._connection, self._request, self._records
        sent = min(IN_FLIGHT, count)
        answered = 0
        start_line.wait()
        end = time.perf_counter() + seconds
        for _ in range(sent):
            connection.send(request)
        first = connection.receive()
        size, expected = len(first), check_produced(first, self._error_position) + records
        while True:
            answered += 1
            if sent < count and time.perf_counter() < end:
                connection.send(request)
                sent += 1
            if answered == sent:
                return answered
            answer = connection.receive_alike(size)
            expected = check_produced(answer, self._error_position, expected) + records


def fill(target: Target, topic: str, total_bytes: int) -> tuple[int, int]:
    """Batches of 16 KB, each a millisecond newer than the one before; returns their number and first time."""
    batch = bytearray(frames.value_batch(frames.RECORDS_IN_16K))
    request = bytearray(frames.produce_request(topic, 0, bytes(batch)))
    place = memoryview(request)[-len(batch) - 3 : -3]
    count = max(1, total_bytes // len(batch))
    first_ms = int(time.time() * 1000) - count
    error_position = frames.produce_error_position(topic)
    expected = 0
    with target.connect() as connection:
        waiting = 0
        for number in range(count):
            frames.stamp(batch, first_ms + number)
            place[:] = batch
            connection.send(request)
            waiting += 1
            if waiting == IN_FLIGHT or number == count - 1:
                for _ in range(waiting):
                    check_produced(connection.receive(), error_position, expected)
                    expected += frames.RECORDS_IN_16K
                waiting = 0
    return count, first_ms


def fetch(target: Target, topic: str, bytes_max: int, limits: Limits) -> Load:
    """Read a topic of 16 KB batches from beginning to end again and again, one fetch at a time."""
    request = frames.FetchRequest(topic, 0, bytes_max, wait_ms=0)
    batch_bytes = len(frames.value_batch(frames.RECORDS_IN_16K))
    moved = answered = offset = 0
    with target.connect() as connection, Meter(target.pid) as meter:
        connection.buffer = bytearray(bytes_max + FETCH_EXTRA_BYTES)
        start = time.perf_counter()
        end = start + limits.seconds
        while moved < limits.bytes and time.perf_counter() < end:
            answer = connection.ask(request.at(offset))
            answered += 1
            size, position = request.records_size(answer)
            if not size:
                offset = 0
                continue
            records = answer[position : position + size]
            offset = frames.offset_after(records, batch_bytes, frames.RECORDS_IN_16K, offset)
            moved += size
        seconds = time.perf_counter() - start
    return meter.load(answered, moved, seconds)


def acknowledged(target: Target, topic: str, count: int, seconds_max: float = 60.0) -> Load:
    """One record in flight: from sending it to receiving its acknowledgement."""
    with target.connect() as connection, Meter(target.pid) as meter:
        start = time.perf_counter()
        latencies = time_acknowledgements(connection, topic, count, seconds_max)
        seconds = time.perf_counter() - start
    return meter.load(len(latencies), len(latencies) * frames.RECORD_BYTES, seconds, tuple(latencies))


def time_acknowledgements(
    connection: Connection, topic: str, count: int, seconds_max: float, stop: threading.Event | None = None
) -> list[float]:
    """The seconds of each acknowledgement, until there are `count`, the time is over, or `stop` is set."""
    request = frames.produce_request(topic, 0, frames.value_batch(1))
    error_position = frames.produce_error_position(topic)
    expected: int | None = None
    latencies: list[float] = []
    end = time.perf_counter() + seconds_max
    while len(latencies) < count and not (stop and stop.is_set()):
        start = time.perf_counter()
        answer = connection.ask(request)
        now = time.perf_counter()
        expected = check_produced(answer, error_position, expected) + 1
        latencies.append(now - start)
        if now > end:
            break
    return latencies


def beside_handshakes(target: Target, topic: str, handshakes: int) -> Load:
    """Acknowledgements as above, until the TLS connections that so many others begin at once are complete."""
    command = [sys.executable, "-m", "tests.bench.many_handshakes", target.bootstrap, target.authority]
    stop = threading.Event()
    with target.connect() as connection, ThreadPoolExecutor(1) as threads, Meter(target.pid) as meter:
        start = time.perf_counter()
        running = threads.submit(time_acknowledgements, connection, topic, 1 << 30, 120.0, stop)
        try:
            subprocess.run([*command, str(handshakes)], check=True)
            seconds = time.perf_counter() - start
        finally:
            stop.set()
        latencies = running.result()
    count = len(latencies)
    return meter.load(count, count * frames.RECORD_BYTES, seconds, tuple(latencies))


def end_to_end(target: Target, topic: str, count: int) -> Load:
    """From sending a record to receiving it from a fetch that was waiting for it."""
    produced = frames.produce_request(topic, 0, frames.value_batch(1))
    error_position = frames.produce_error_position(topic)
    batch_bytes = len(frames.value_batch(1))
    request = frames.FetchRequest(topic, 0, 65_536, wait_ms=30_000)
    latencies: list[float] = []
    with (
        target.connect() as writer,
        target.connect() as reader,
        Meter(target.pid) as meter,
    ):
        begin = time.perf_counter()
        offset = check_produced(writer.ask(produced), error_position) + 1
        for _ in range(count):
            reader.send(request.at(offset))
            time.sleep(0.001)  # the fetch must be waiting before the record comes
            start = time.perf_counter()
            writer.send(produced)
            answer = reader.receive()
            latencies.append(time.perf_counter() - start)
            size, position = request.records_size(answer)
            frames.offset_after(answer[position : position + size], batch_bytes, 1, offset)
            check_produced(writer.receive(), error_position, offset)
            offset += 1
        seconds = time.perf_counter() - begin
    return meter.load(2 * count, count * frames.RECORD_BYTES, seconds, tuple(latencies))


@dataclass(frozen=True, slots=True)
class Ring:
    """Partitions and connections that are used in turn, and how many requests are in flight."""

    partitions: int
    connections: int
    in_flight: int = IN_FLIGHT


def produce_in_turns(target: Target, topic: str, turns: Ring, count: int) -> Load:
    """This many requests of one record, each to the next partition on the next connection."""
    batch = frames.value_batch(1)
    requests = [frames.produce_request(topic, partition, batch) for partition in range(turns.partitions)]
    error_position = frames.produce_error_position(topic)
    in_flight = turns.in_flight
    with contextlib.ExitStack() as opened:
        ring = [opened.enter_context(target.connect()) for _ in range(turns.connections)]
        for turn in range(max(len(ring), len(requests))):  # every connection and partition has its first
            connection = ring[turn % len(ring)]
            check_produced(connection.ask(requests[turn % len(requests)]), error_position)
        with Meter(target.pid) as meter:
            start = time.perf_counter()
            for turn in range(count + in_flight):
                if turn >= in_flight:
                    check_produced(ring[(turn - in_flight) % len(ring)].receive(), error_position)
                if turn < count:
                    ring[turn % len(ring)].send(requests[turn % len(requests)])
            seconds = time.perf_counter() - start
    return meter.load(count, count * len(batch), seconds)
