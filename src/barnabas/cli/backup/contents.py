"""What a backup has: plan.json when it begins, and manifest.json, with the checksums of all files, when it is
complete. The records of a partition are in files topics/TOPIC/PARTITION/OFFSET.log, batch after batch, as in
a log: `barnabas dump-log` reads them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from barnabas.cli.backup.places import Directory, ObjectStore
from barnabas.cli.failures import ToolError
from barnabas.client.types import TopicPartition

FORMAT = 1
PLAN = "plan.json"
MANIFEST = "manifest.json"
CHECKSUM = "manifest.json.sha256"
READ_BYTES = 1 << 20

Place = Directory | ObjectStore


@dataclass
class Chunk:
    """A file with batches: of records at `first_offset` to `next_offset` - 1."""

    file: str
    first_offset: int
    next_offset: int
    records: int
    bytes: int
    sha256: str


@dataclass
class PartitionCopy:
    """The records from `start` on, before `end`. Some offsets may have none."""

    start: int
    end: int
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def next_offset(self) -> int:
        return self.chunks[-1].next_offset if self.chunks else self.start


@dataclass
class TopicCopy:
    configs: dict[str, str]
    replication_factor: int
    partitions: list[PartitionCopy]


@dataclass
class Committed:
    topic: str
    partition: int
    offset: int
    metadata: str


@dataclass
class Contents:
    cluster_id: str
    created: str
    version: str
    topics: dict[str, TopicCopy]
    groups: dict[str, list[Committed]]
    format: int = FORMAT

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionCopy]]:
        for name, topic in self.topics.items():
            for number, copy in enumerate(topic.partitions):
                yield TopicPartition(name, number), copy

    def chunks(self) -> list[Chunk]:
        return [chunk for _, copy in self.partitions() for chunk in copy.chunks]

    def to_json(self) -> bytes:
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def contents_of(data: bytes, where: str) -> Contents:
    try:
        read: dict[str, Any] = json.loads(data)
        if read["format"] != FORMAT:
            raise ToolError(f"{where} has format {read['format']}: this release reads format {FORMAT}.")
        topics = {name: _topic(topic) for name, topic in read["topics"].items()}
        groups = {name: [Committed(**each) for each in offsets] for name, offsets in read["groups"].items()}
        return Contents(read["cluster_id"], read["created"], read["version"], topics, groups)
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError(f"{where} cannot be read: {error!r}. Is it of a backup?") from error


def _topic(read: dict[str, Any]) -> TopicCopy:
    partitions = [
        PartitionCopy(each["start"], each["end"], [Chunk(**chunk) for chunk in each["chunks"]])
        for each in read["partitions"]
    ]
    return TopicCopy(read["configs"], read["replication_factor"], partitions)


def progress_file(partition: TopicPartition) -> str:
    """While a backup runs: the complete files of the partition."""
    return f"topics/{partition.topic}/{partition.partition}/progress.json"


def read_manifest(place: Place) -> Contents:
    data = place.read(MANIFEST)
    if data is None:
        if place.read(PLAN) is not None:
            raise ToolError(
                f"The backup in {place} is not complete: run the same `barnabas backup` again to finish it."
            )
        raise ToolError(f"There is no backup in {place}: it has no {MANIFEST}.")
    if place.read(CHECKSUM) != _line(data):
        raise ToolError(f"{MANIFEST} in {place} does not match its checksum: the backup is damaged.")
    return contents_of(data, f"{place}/{MANIFEST}")


def write_manifest(place: Place, contents: Contents) -> None:
    data = contents.to_json()
    place.write(CHECKSUM, _line(data))
    # Last: a backup with a manifest is complete.
    place.write(MANIFEST, data)


def _line(data: bytes) -> bytes:
    """As sha256sum prints it, so that `sha256sum -c` can check it."""
    return f"{hashlib.sha256(data).hexdigest()}  {MANIFEST}\n".encode()


def check_chunk(place: Place, chunk: Chunk) -> str | None:
    """What is wrong with a file, or None. Reads it in pieces."""
    digest = hashlib.sha256()
    size = 0
    try:
        with place.reading(chunk.file) as file:
            while data := file.read(READ_BYTES):
                digest.update(data)
                size += len(data)
    except FileNotFoundError:
        return f"{chunk.file} is missing"
    if size != chunk.bytes:
        return f"{chunk.file} has {size} bytes instead of {chunk.bytes}"
    return None if digest.hexdigest() == chunk.sha256 else f"{chunk.file} does not match its checksum"
