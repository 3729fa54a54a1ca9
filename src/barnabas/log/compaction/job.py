"""A job for the process that compacts logs, and its result, as lines of JSON. Pure values.

The job describes the log at the time when the job is made. The process reads those files, writes new ones
beside them, and touches nothing else. At the end the owner of the log checks that it has not changed."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.ids import TopicPartition


class SourceSegment(NamedTuple):
    """`bad` are byte ranges (start, end) without valid batches."""

    base_offset: int
    next_offset: int
    size: int
    bad: tuple[tuple[int, int], ...] = ()


class LastOfProducer(NamedTuple):
    """A batch that cleaning must keep: the one that ends at `last_offset` or, if that is -1, the marker with
    this epoch."""

    producer_id: int
    last_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """`segments` are all segments of the log, the active one last. Those below `upper_offset` may be
    rewritten; records from `first_dirty_offset` on are new since the last cleaning."""

    partition: TopicPartition
    directory: Path
    segments: tuple[SourceSegment, ...]
    producers: tuple[LastOfProducer, ...]
    first_dirty_offset: int
    upper_offset: int
    now_ms: int
    delete_retention_ms: int = 24 * 3600 * 1000
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    map_bytes: int = 128 << 20
    map_load_factor: float = 0.9
    bytes_per_second: float = float("inf")

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"directory": str(self.directory)})

    @classmethod
    def from_json(cls, text: str) -> "CleaningJob":
        fields: dict[str, Any] = json.loads(text)
        fields["partition"] = TopicPartition(*fields["partition"])
        fields["directory"] = Path(fields["directory"])
        fields["segments"] = tuple(
            SourceSegment(base, following, size, tuple((start, end) for start, end in bad))
            for base, following, size, bad in fields["segments"]
        )
        fields["producers"] = tuple(LastOfProducer(*row) for row in fields["producers"])
        return cls(**fields)


class CleanedGroup(NamedTuple):
    """The adjacent segments at `bases` became one segment of `size` bytes at the first base."""

    bases: tuple[int, ...]
    size: int
    first_timestamp: int | None
    max_timestamp: int
    max_timestamp_offset: int


@dataclass(frozen=True, slots=True)
class CleaningResult:
    """All keys below `end_offset` are clean when the groups are installed. Or an `error`; `data_fault` means
    that trying again cannot help."""

    end_offset: int = 0
    groups: tuple[CleanedGroup, ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    error: str | None = None
    data_fault: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "CleaningResult":
        fields: dict[str, Any] = json.loads(text)
        fields["groups"] = tuple(CleanedGroup(tuple(bases), *rest) for bases, *rest in fields["groups"])
        return cls(**fields)
