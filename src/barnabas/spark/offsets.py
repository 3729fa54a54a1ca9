"""Offsets of many partitions, as Spark's Kafka connector writes them in checkpoints: {"orders":{"0":110}}.

Beside the topics, an offset may have the key `#initial`, which cannot be the name of a topic. If the first
batch of a query was not finished, Spark asks again where the restarted query begins, and the answer may be
different then. So the end of the first batch contains its beginning:
{"orders":{"0":110},"#initial":{"orders":{"0":100}}}, and the offset where a query begins is marked
{"#initial":true}. In Spark's reports, the newest offsets have the key `#bytes`: about how many bytes the
batch reads; and `#ranges` if the rows that Spark counts are not records (rangesOnly). Pure values."""

import json
from collections.abc import Mapping
from typing import Any

from barnabas.ids import TopicPartition

# Keys that begin with this are not names of topics.
MARK = "#"
INITIAL = "#initial"
BYTES = "#bytes"
RANGES = "#ranges"

Offsets = dict[TopicPartition, int]
"""The next offset to read, by partition."""


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """Sorted, so that equal offsets have equal texts: Spark compares the texts."""
    topics: dict[str, Any] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def offsets_from_json(document: Mapping[str, Any]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in document.items()
        if not topic.startswith(MARK)
        for partition, offset in partitions.items()
    }


def beginning(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """The offset where a query begins, marked so that batch_end() can store it."""
    return {**offsets_to_json(offsets), INITIAL: True}


def is_beginning(document: Mapping[str, Any]) -> bool:
    return document.get(INITIAL) is True


def batch_end(start: Mapping[str, Any], end: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """The end of a batch that begins at `start`."""
    document = offsets_to_json(end)
    if is_beginning(start):
        document[INITIAL] = offsets_to_json(offsets_from_json(start))
    return document


def batch_start(start: Mapping[str, Any], end: Mapping[str, Any]) -> Offsets:
    """Where a batch begins: the beginning that its end contains, otherwise what Spark says."""
    stored = end.get(INITIAL)
    return offsets_from_json(stored if isinstance(stored, dict) else start)


def report_of(newest: Mapping[TopicPartition, int], batch_bytes: int | None) -> dict[str, Any]:
    """The newest offsets for Spark's report of a batch, and the bytes of the batch if they are known."""
    document = offsets_to_json(newest)
    return document if batch_bytes is None else {**document, BYTES: batch_bytes}


def reported_bytes(document: Mapping[str, Any]) -> int | None:
    batch_bytes = document.get(BYTES)
    return batch_bytes if isinstance(batch_bytes, int) else None


def reported_offsets(text: Any) -> Mapping[str, Any]:
    """Offsets in a report of Spark. Those of other sources may have another form; then there are none."""
    document = json.loads(text) if isinstance(text, str) else text
    is_ours = isinstance(document, dict) and all(
        isinstance(value, dict) for name, value in document.items() if not name.startswith(MARK)
    )
    return document if is_ours else {}


def as_text(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps(offsets_to_json(offsets))
