"""Acknowledgement latency with and without a compaction beside it.

A topic is filled with keyed records, each key many times over, under the policy `delete`; then the policy
becomes `compact`, and while the cleaner works another topic's acknowledgements are timed."""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench import frames, loads
from tests.bench.connection import Connection, check_produced, create_topic, delete_topic
from tests.bench.loads import Latencies, Tick
from tests.bench.peers import Peer

DIRTY = "bench-dirty"
CLEAN = "bench-beside"
SEGMENT_BYTES = 20_000_000
KEYS_IN_A_BATCH = 9000
COPIES = 10
ALONE_SECONDS = 3.0
PATIENCE_SECONDS = 300.0
LOOK_EVERY_SECONDS = 0.5
READ_METRIC = "kafka_log_logcleaner_bytesread"


@dataclass(frozen=True, slots=True)
class BesideCompaction:
    alone: Latencies
    beside: Latencies
    seconds: float
    bytes_after: int


def produce_beside_compaction(peer: Peer, bytes_dirty: int, tick: Tick) -> BesideCompaction:
    create_topic(peer.bootstrap, CLEAN)
    create_topic(peer.bootstrap, DIRTY, segment_bytes=str(SEGMENT_BYTES), min_cleanable_dirty_ratio="0.01")
    _fill(peer, bytes_dirty, tick)
    end = time.monotonic() + ALONE_SECONDS
    alone = loads.acknowledged(peer, CLEAN, lambda done: done < 100 or time.monotonic() < end)
    with Connection(peer.bootstrap) as connection:
        connection.ask(frames.set_topic_config_request(DIRTY, "cleanup.policy", "compact"))
    cleaning = Cleaning(peer, bytes_dirty, tick)
    beside = loads.acknowledged(peer, CLEAN, lambda done: done < 100 or cleaning.goes_on())
    found = BesideCompaction(alone, beside, cleaning.seconds, cleaning.size())
    delete_topic(peer.bootstrap, DIRTY)
    delete_topic(peer.bootstrap, CLEAN)
    return found


def _fill(peer: Peer, bytes_dirty: int, tick: Tick) -> None:
    """Every key COPIES times, in batches of about a megabyte, one after the other."""
    first = frames.keyed_batch(0, KEYS_IN_A_BATCH)
    distinct = max(1, bytes_dirty // (len(first) * COPIES))
    requests = [
        frames.produce_request(DIRTY, 0, frames.keyed_batch(turn * KEYS_IN_A_BATCH, KEYS_IN_A_BATCH))
        for turn in range(distinct)
    ]
    error_position = frames.produce_error_position(DIRTY)
    with Connection(peer.bootstrap) as connection:
        for copy in range(COPIES):
            for request in requests:
                check_produced(connection.ask(request), error_position)
            tick((copy + 1) / COPIES)


class Cleaning:
    """Whether the cleaner still has work: looked at twice a second, between two acknowledgements."""

    def __init__(self, peer: Peer, bytes_dirty: int, tick: Tick) -> None:
        self._peer = peer
        self._directory = peer.partition_directory(DIRTY)
        self._bytes_dirty = bytes_dirty
        self._tick = tick
        self._begin = self._looked = time.monotonic()
        self._read_before = peer.metric(READ_METRIC)
        self._smallest = self.size()
        self._shrunk = self._begin
        self.seconds = 0.0

    def size(self) -> int:
        return sum(_size(path) for path in self._directory.glob("*.log"))

    def goes_on(self) -> bool:
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_SECONDS:
            return True
        self._looked = now
        size = self.size()
        if size < self._smallest:
            self._smallest, self._shrunk = size, now
            self.seconds = now - self._begin
        self._tick(self._part_done(size))
        # One copy of each key and the active segment stay: done when that is near and nothing shrinks.
        near = size < self._bytes_dirty / COPIES * 2 + 2 * SEGMENT_BYTES
        if near and now - self._shrunk > 2:
            return False
        if now - self._begin > PATIENCE_SECONDS:
            raise RuntimeError(f"the cleaner left {size / 1e6:.0f} MB after {PATIENCE_SECONDS:.0f} s")
        return True

    def _part_done(self, size: int) -> float:
        """By what the cleaner says it has read, where the peer tells; else by what is gone from the disk."""
        read = self._peer.metric(READ_METRIC)
        if read is None or self._read_before is None:
            return 1 - size / self._bytes_dirty
        return min(1.0, (read - self._read_before) / self._bytes_dirty)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deleted between the listing and the look
        return 0
