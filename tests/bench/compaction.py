"""Compaction alone, and compaction while another topic gets acknowledgements; run in the driver's process.

A topic with the policy `delete` is filled with keyed records, each key many times. Then the policy becomes
`compact`. While another connection sends as fast as it can, a cleaner with a low priority gets only the
remaining processor time: the speed of compaction is measured alone."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.bench import frames
from tests.bench.connection import Connection, check_produced
from tests.bench.loads import Target, time_acknowledgements
from tests.bench.usage import Load, Meter

KEYS_IN_A_BATCH = 9000
COPIES = 10
ALONE_COUNT = 3000
PATIENCE_SECONDS = 300.0
LOOK_EVERY_SECONDS = 0.1
# The cleaner looks for work every half second: if no file has shrunk for this long, it is done.
STILL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BesideCompaction:
    alone_seconds: list[float]
    beside_seconds: list[float]
    seconds: float
    bytes_before: int


def compact(target: Target, dirty: str, directory: Path, bytes_dirty: int) -> Load:
    """The load has no requests; its bytes are those of the log before compaction."""
    _fill(target, dirty, bytes_dirty)
    before = _size_below(directory)
    with Connection(target.bootstrap) as connection, Meter(target.pid) as meter:
        seconds = _await_policy(connection, dirty, directory, bytes_dirty)
    return meter.load(1, before, seconds)


def segment_bytes(bytes_dirty: int) -> int:
    return max(1 << 20, bytes_dirty // 10)


def compact_beside(
    target: Target, dirty: str, clean: str, directory: Path, bytes_dirty: int
) -> BesideCompaction:
    """`directory` is the dirty partition's, where the peer keeps its files."""
    _fill(target, dirty, bytes_dirty)
    before = _size_below(directory)
    with (
        Connection(target.bootstrap) as connection,
        Connection(target.bootstrap) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        alone = time_acknowledgements(connection, clean, ALONE_COUNT, 5.0)
        is_done = threading.Event()
        acknowledging = threads.submit(
            time_acknowledgements, connection, clean, 1 << 40, PATIENCE_SECONDS, is_done
        )
        try:
            seconds = _await_policy(other, dirty, directory, bytes_dirty)
        finally:
            is_done.set()
        return BesideCompaction(alone, acknowledging.result(), seconds, before)


def _fill(target: Target, topic: str, bytes_dirty: int) -> None:
    """Every key COPIES times, in batches of about a megabyte, one after the other."""
    first = frames.keyed_batch(0, KEYS_IN_A_BATCH)
    distinct = max(1, bytes_dirty // (len(first) * COPIES))
    requests = [
        frames.produce_request(topic, 0, frames.keyed_batch(turn * KEYS_IN_A_BATCH, KEYS_IN_A_BATCH))
        for turn in range(distinct)
    ]
    error_position = frames.produce_error_position(topic)
    expected = 0
    with Connection(target.bootstrap) as connection:
        for request in requests * COPIES:
            check_produced(connection.ask(request), error_position, expected)
            expected += KEYS_IN_A_BATCH


def _await_policy(connection: Connection, dirty: str, directory: Path, bytes_dirty: int) -> float:
    """Seconds from the change of the policy until all is compacted."""
    # One copy of each key and the whole active segment stay.
    near = bytes_dirty / COPIES * 2 + 2 * segment_bytes(bytes_dirty)
    connection.ask(frames.set_topic_config_request(dirty, "cleanup.policy", "compact"))
    return _await_compacted(directory, near)


def _await_compacted(directory: Path, near: float) -> float:
    """The seconds until the files shrank for the last time."""
    begin = shrunk = time.monotonic()
    smallest = _size_below(directory)
    while True:
        time.sleep(LOOK_EVERY_SECONDS)
        now, size = time.monotonic(), _size_below(directory)
        if size < smallest:
            smallest, shrunk = size, now
        if size < near and now - shrunk > STILL_SECONDS:
            return shrunk - begin
        if now - begin > PATIENCE_SECONDS:
            raise RuntimeError(f"the cleaner left {size / 1e6:.0f} MB after {PATIENCE_SECONDS:.0f} s")


def _size_below(directory: Path) -> int:
    return sum(_size(path) for path in directory.glob("*.log"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deleted after it was listed
        return 0
