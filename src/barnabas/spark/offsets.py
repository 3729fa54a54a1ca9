"""Offsets of many partitions, as Spark's Kafka connector writes them in checkpoints: {"orders":{"0":110}}.

Beside the topics, an offset may have the key `#initial`, which cannot be the name of a topic. If the first
batch of a query was not finished, Spark asks again where the restarted query begins, and the answer may be
different then. So the end of the first batch contains its beginning:
{"orders":{"0":110},"#initial":{"orders":{"0":100}}}, and the offset where a query begins is marked
{"#initial":true}. Pure values."""

import json
from collections.abc import Mapping
from typing import Any

from barnabas.ids import TopicPartition

INITIAL = "#initial"

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
        if topic != INITIAL
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


def as_text(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps(offsets_to_json(offsets))
