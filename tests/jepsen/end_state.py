"""What must hold after a run, when all faults are over and the clients are gone. Each check returns what is
wrong, as text.

    replicas    all replicas of a partition have the same bytes up to the high watermark
    batches     what a consumer could read during the run is still there, unchanged
    epochs      leader epochs only grow, and each has at most one leader
    outputs     the brokers have printed no errors but expected ones
    usage       descriptors and memory of the brokers are back where they were

That committed offsets do not go back is judged by the checker, from the history."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.bench.usage import own_bytes, resident_bytes
from tests.jepsen.watcher import Batch, Watched

from barnabas.ids import INTERNAL_TOPICS, TopicPartition
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replaying import start_and_records
from barnabas.metadata.zookeeper.inspecting import read_metadata
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.records.batch import iter_headers

# A follower has what its leader has a moment later.
SETTLE_SECONDS_MAX = 15.0
POLL_SECONDS = 0.1

# ---- replicas


class Segments(NamedTuple):
    """The log of one replica: its bytes, and the base offset of its last segment."""

    data: bytes
    active_base: int


def read_segments(directory: Path) -> Segments:
    files = sorted(directory.glob("*.log"))
    return Segments(b"".join(path.read_bytes() for path in files), int(files[-1].stem) if files else 0)


def replica_directory(data_dir: Path, partition: TopicPartition) -> Path | None:
    """Where a broker has its replica, if it has one; a broker may have several disks."""
    candidates = (each / str(partition) for each in (data_dir, *data_dir.glob("disk-*")))
    return next((each for each in candidates if each.exists()), None)


def batches_of(data: bytes, start: int, end: int) -> dict[int, tuple[Batch, bytes]]:
    """By base offset, those that are complete and in the range."""
    view = memoryview(data)
    return {
        header.base_offset: (
            Batch(header.last_offset, header.leader_epoch, header.crc),
            bytes(view[position : position + header.size]),
        )
        for position, header in iter_headers(data)
        if header.base_offset >= start and header.next_offset <= end
    }


def check_replicas(directories: Mapping[int, Path], ends: Mapping[TopicPartition, int]) -> Iterator[str]:
    """`directories` are those of the brokers with replicas, `ends` the high watermarks. The brokers may run:
    a difference counts if it stays."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    for partition, end in ends.items():
        while difference := _difference(directories, partition, end):
            if time.monotonic() > deadline:
                yield f"{partition}: {difference}"
                break
            time.sleep(POLL_SECONDS)


def _difference(directories: Mapping[int, Path], partition: TopicPartition, end: int) -> str | None:
    segments = {
        broker_id: read_segments(directory)
        for broker_id, data_dir in directories.items()
        if (directory := replica_directory(data_dir, partition)) is not None
    }
    # Compaction runs at another time on each replica, but never in the last segment.
    is_compacted = partition.topic in INTERNAL_TOPICS
    start = max((each.active_base for each in segments.values()), default=0) if is_compacted else 0
    replicas = {broker_id: batches_of(each.data, start, end) for broker_id, each in segments.items()}
    if not replicas:
        return "no broker has a replica"
    first_id, first = next(iter(replicas.items()))
    for broker_id, other in replicas.items():
        if other != first:
            offset = min(
                offset for offset in first.keys() | other.keys() if first.get(offset) != other.get(offset)
            )
            return (
                f"up to the high watermark {end}, broker {first_id} has at offset {offset} "
                f"{_shown(first.get(offset))}, broker {broker_id} has {_shown(other.get(offset))}"
            )
    last = max((batch.last_offset for batch, _ in first.values()), default=start - 1)
    if last + 1 != end and not (is_compacted and end <= start):
        return f"the high watermark is {end}, but the logs end at {last + 1}"
    return None


def _shown(found: tuple[Batch, bytes] | None) -> str:
    return "nothing" if found is None else f"{found[0]} in {len(found[1])} bytes"


# ---- what was seen during the run


def check_batches(
    directories: Mapping[int, Path], watched: Mapping[TopicPartition, Watched]
) -> Iterator[str]:
    for partition, seen in watched.items():
        for broker_id, data_dir in directories.items():
            if (directory := replica_directory(data_dir, partition)) is None:
                continue
            data = read_segments(directory).data
            there = {offset: batch for offset, (batch, _) in batches_of(data, 0, 1 << 62).items()}
            changed = [offset for offset, batch in seen.batches.items() if there.get(offset) != batch]
            if changed:
                offset = min(changed)
                yield (
                    f"{partition}: {len(changed)} batches that were read have changed on broker {broker_id}, "
                    f"the first at offset {offset}: it was {seen.batches[offset]} and is {there.get(offset)}"
                )


# ---- leader epochs


class Leadership(NamedTuple):
    partition: TopicPartition
    epoch: int
    leader: int


def read_leaderships(zookeeper_connect: str) -> list[Leadership]:
    """Every state of every partition in the metadata log, in its order."""
    cluster_id, updates = asyncio.run(read_metadata(ZooKeeperSettings(zookeeper_connect)))
    image = MetadataImage(cluster_id=cluster_id)
    found: list[Leadership] = []
    for update in updates:
        start, records = start_and_records(image, [update])
        image = start.apply(records)
        found += [
            Leadership(TopicPartition(topic.name, number), partition.leader_epoch, partition.leader)
            for topic in image.topics.values()
            for number, partition in enumerate(topic.partitions)
        ]
    return found


def check_epochs(leaderships: Iterable[Leadership], topics: Sequence[str]) -> Iterator[str]:
    leaders: dict[tuple[TopicPartition, int], int] = {}
    highest: dict[TopicPartition, int] = {}
    for partition, epoch, leader in leaderships:
        if partition.topic not in topics:
            continue
        if epoch < highest.get(partition, -1):
            yield f"the leader epoch of {partition} went from {highest[partition]} to {epoch}"
        highest[partition] = epoch
        if leader >= 0 and leaders.setdefault((partition, epoch), leader) != leader:
            yield f"epoch {epoch} of {partition} has the leaders {leaders[partition, epoch]} and {leader}"


# ---- what the brokers printed


class Expected(NamedTuple):
    """A line that is no error of the broker, and why it is printed."""

    pattern: str
    reason: str


ERROR_LINE = re.compile(r"^\[[^]]*\] (ERROR|CRITICAL) |^Traceback |Exception ignored|never awaited|^Fatal ")


def error_lines(output: str, expected: Sequence[Expected]) -> list[str]:
    patterns = [re.compile(each.pattern) for each in expected]
    return [
        line
        for line in output.splitlines()
        if ERROR_LINE.search(line) and not any(pattern.search(line) for pattern in patterns)
    ]


def check_outputs(outputs: Mapping[int, str], expected: Sequence[Expected]) -> Iterator[str]:
    for broker_id, output in outputs.items():
        lines = error_lines(output, expected)
        if lines:
            yield f"broker {broker_id} has printed {len(lines)} errors, the first: {lines[0]}"


# ---- descriptors and memory


@dataclass(frozen=True)
class Usage:
    """What one process uses."""

    pid: int
    sockets: int
    files: int
    resident_bytes: int
    # Without libraries and other files, which a process loads when it needs them for the first time.
    own_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.sockets} sockets, {self.files} files, {self.resident_bytes / 1e6:.0f} MB"


def usage_of(pid: int) -> Usage:
    sockets = files = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            is_socket = str(path.readlink()).startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            continue
        sockets, files = sockets + is_socket, files + (not is_socket)
    return Usage(pid, sockets, files, resident_bytes(pid), own_bytes(pid))


@dataclass(frozen=True)
class Allowance:
    """How much more than before there may be: a share of it, and an absolute number. Connections between
    brokers come and go; a log that was written to keeps three files open; an allocator does not return all
    memory. Sockets are those of all brokers together: which one has how many depends on who is the controller
    and who leads."""

    share: float = 0.1
    sockets: int = 9
    files: int = 64
    resident_bytes: int = 24 << 20


ALLOWANCE = Allowance()
# A broker has a connection to each other broker for each of eight purposes: three descriptors, since the
# accepting side has two. It is opened when it is needed for the first time, and closed when one of the two
# registers again, or after ten idle minutes. So the sockets of brokers grow with what happens to them, up to
# a limit.
OWN_SOCKETS, PEER_SOCKETS = 9, 3 * 8


def sockets_max(brokers: int) -> int:
    """What brokers without clients may have when each has needed each other one for each purpose."""
    return OWN_SOCKETS * brokers + PEER_SOCKETS * brokers * (brokers - 1)


def check_usage(
    before: Mapping[int, Usage], after: Mapping[int, Usage], allowance: Allowance = ALLOWANCE
) -> Iterator[str]:
    def problems(who: str, name: str, base: int, now: int, enough: int = 0) -> Iterator[str]:
        most = max(base * (1 + allowance.share) + getattr(allowance, name), enough)
        if now > most:
            yield f"{who}: {now} {name}, before the load {base}; at most {most:.0f} are allowed"

    both = sorted(before.keys() & after.keys())
    sockets = [sum(usage[broker_id].sockets for broker_id in both) for usage in (before, after)]
    yield from problems("all brokers", "sockets", *sockets, enough=sockets_max(len(both)))
    for broker_id in both:
        for name in ("files", "resident_bytes"):
            numbers = [getattr(usage[broker_id], name) for usage in (before, after)]
            yield from problems(f"broker {broker_id}", name, *numbers)
