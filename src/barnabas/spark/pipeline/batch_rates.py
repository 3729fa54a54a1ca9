"""How fast the last batch of a query was, from its checkpoint: Spark need not run.

Spark writes offsets/N before batch N, with the time and the end of the batch in each source, and commits/N
after it."""

import json
from itertools import zip_longest
from pathlib import Path

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import batch_start, offsets_from_json, reported_offsets

# The form of Spark's file that is known here: this line, a line about the batch, then one for each source.
VERSION = "v1"
NO_OFFSET = "-"


def rows_per_second(checkpoint: Path, batch: int) -> dict[str, int]:
    """Records per second that the batch has read, by topic. Empty if the files are not there any more, or the
    source is no topic."""
    ends = _lines(checkpoint / "offsets" / str(batch))
    committed = checkpoint / "commits" / str(batch)
    if len(ends) < 2 or not committed.exists():
        return {}
    seconds = committed.stat().st_mtime - json.loads(ends[0])["batchTimestampMs"] / 1000
    starts = _lines(checkpoint / "offsets" / str(batch - 1))
    counts: dict[str, int] = {}
    for end, start in zip_longest(ends[1:], starts[1:], fillvalue=NO_OFFSET):
        for partition, count in _counts(start, end).items():
            counts[partition.topic] = counts.get(partition.topic, 0) + count
    return {topic: round(count / seconds) for topic, count in counts.items()} if seconds > 0 else {}


def _lines(file: Path) -> list[str]:
    """What is after the version."""
    try:
        version, *lines = file.read_text().splitlines()
    except FileNotFoundError:
        return []
    return lines if version == VERSION else []


def _counts(start: str, end: str) -> dict[TopicPartition, int]:
    if end == NO_OFFSET:
        return {}
    after = reported_offsets(end)
    before = batch_start({} if start == NO_OFFSET else reported_offsets(start), after)
    return {
        partition: offset - before.get(partition, offset)
        for partition, offset in offsets_from_json(after).items()
    }
