"""The loads: produce with requests in flight, fetch in sequence, one at a time, and end to end."""

import contextlib
import selectors
import statistics
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.bench import frames
from tests.bench.connection import Connection, check_produced
from tests.bench.peers import Peer
from tests.bench.usage import Load, cpu_seconds

IN_FLIGHT = 5
Tick = Callable[[float], None]  # told the part of the work that is done, 0 to 1


@dataclass(frozen=True, slots=True)
class Limits:
    """A load ends at whichever comes first."""

    seconds: float
    bytes: int

    def part_done(self, since: float, moved: int) -> float:
        return max((time.perf_counter() - since) / self.seconds, moved / self.bytes)


@dataclass(frozen=True, slots=True)
class Latencies:
    p50_us: float
    p99_us: float
    count: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latencies":
        cuts = statistics.quantiles(seconds, n=100)
        return cls(cuts[49] * 1e6, cuts[98] * 1e6, len(seconds))


def produce(peer: Peer, topic: str, batch: bytes, limits: Limits, tick: Tick, partitions: int = 1) -> Load:
    """One connection for each partition, IN_FLIGHT requests on each, until the limits are reached."""
    with contextlib.ExitStack() as opened:
        selector = opened.enter_context(selectors.DefaultSelector())
        requests = [frames.produce_request(topic, partition, batch) for partition in range(partitions)]
        for request in requests:
            connection = opened.enter_context(Connection(peer.bootstrap))
            selector.register(connection.socket, selectors.EVENT_READ, (connection, request))
        before = cpu_seconds(peer.pid)
        start = time.perf_counter()
        answered = _pump(selector, frames.produce_error_position(topic), len(batch), limits, tick)
        seconds = time.perf_counter() - start
        cost = cpu_seconds(peer.pid) - before
    return Load(answered, answered * len(batch), seconds, cost)


def _pump(
    selector: selectors.BaseSelector, error_position: int, batch_size: int, limits: Limits, tick: Tick
) -> int:
    for key in selector.get_map().values():
        connection, request = key.data
        for _ in range(IN_FLIGHT):
            connection.send(request)
    outstanding = IN_FLIGHT * len(selector.get_map())
    answered = 0
    start = time.perf_counter()
    going_on = True
    while outstanding:
        for key, _ in selector.select():
            connection, request = key.data
            check_produced(connection.receive(), error_position)
            answered += 1
            if going_on:
                connection.send(request)
            else:
                outstanding -= 1
        if answered % 64 == 0:
            done = limits.part_done(start, answered * batch_size)
            going_on = done < 1
            tick(min(done, 1.0))
    return answered


def fetch(peer: Peer, topic: str, bytes_max: int, limits: Limits, tick: Tick) -> Load:
    """Read the topic from beginning to end again and again, one fetch at a time."""
    request = frames.FetchRequest(topic, 0, bytes_max, wait_ms=0)
    moved = answered = offset = 0
    with Connection(peer.bootstrap) as connection:
        connection.ask(request.at(0))  # grows the buffer and warms the path
        before = cpu_seconds(peer.pid)
        start = time.perf_counter()
        while (done := limits.part_done(start, moved)) < 1:
            answer = connection.ask(request.at(offset))
            size, position = request.records_size(answer)
            offset = frames.next_offset(answer[position : position + size]) or 0
            moved += size
            answered += 1
            tick(done)
        seconds = time.perf_counter() - start
        cost = cpu_seconds(peer.pid) - before
    return Load(answered, moved, seconds, cost)


def fetch_from_end(peer: Peer, topic: str, records_back: int, limits: Limits) -> None:
    """Read forward from so many records before the end; for the soak, whose topic forgets its beginning."""
    request = frames.FetchRequest(topic, 0, 1_048_576, wait_ms=0)
    with Connection(peer.bootstrap) as connection:
        answer = connection.ask(frames.produce_request(topic, 0, frames.value_batch(1)))
        (last,) = struct.unpack_from(">q", answer, frames.produce_error_position(topic) + 2)
        offset = max(0, last - records_back)
        moved = 0
        start = time.perf_counter()
        while offset <= last and limits.part_done(start, moved) < 1:
            answer = connection.ask(request.at(offset))
            size, position = request.records_size(answer)
            offset = frames.next_offset(answer[position : position + size]) or last + 1
            moved += size


def acknowledged(peer: Peer, topic: str, going_on: Callable[[int], bool]) -> Latencies:
    """One record in flight: from sending it to having its acknowledgement."""
    request = frames.produce_request(topic, 0, frames.value_batch(1))
    error_position = frames.produce_error_position(topic)
    seconds: list[float] = []
    with Connection(peer.bootstrap) as connection:
        for _ in range(200):
            connection.ask(request)
        while going_on(len(seconds)):
            start = time.perf_counter()
            answer = connection.ask(request)
            seconds.append(time.perf_counter() - start)
            check_produced(answer, error_position)
    return Latencies.of(seconds)


def end_to_end(peer: Peer, topic: str, count: int, tick: Tick) -> Latencies:
    """From sending a record to having it from a fetch that was waiting for it."""
    produced = frames.produce_request(topic, 0, frames.value_batch(1))
    request = frames.FetchRequest(topic, 0, 65_536, wait_ms=30_000)
    seconds: list[float] = []
    with Connection(peer.bootstrap) as writer, Connection(peer.bootstrap) as reader:
        answer = writer.ask(produced)
        # After the error code comes the offset of the record.
        (last,) = struct.unpack_from(">q", answer, frames.produce_error_position(topic) + 2)
        for turn in range(count):
            reader.send(request.at(last + 1 + turn))
            time.sleep(0.001)  # the fetch must be waiting before the record comes
            start = time.perf_counter()
            writer.send(produced)
            answer = reader.receive()
            seconds.append(time.perf_counter() - start)
            size, _ = request.records_size(answer)
            if size == 0:
                raise RuntimeError("a waiting fetch came back empty")
            writer.receive()
            tick(turn / count)
    return Latencies.of(seconds[len(seconds) // 10 :])
