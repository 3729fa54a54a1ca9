"""Offsets of many partitions, as the stock connector writes them in checkpoints: {"orders":{"0":110}}.

Beside the topics, an offset may have the key `#initial`, which is no name of a topic. Spark asks a restarted
query anew where it begins when its first batch was not finished, and the answer may differ by then. So the
end of the first batch carries its own beginning: {"orders":{"0":110},"#initial":{"orders":{"0":100}}}, and
the offset where a query begins is marked {"#initial":true}. Pure values."""

import json
from collections.abc import Mapping
from typing import Any

from barnabas.ids import TopicPartition

INITIAL = "#initial"

Offsets = dict[TopicPartition, int]
"""The next offset to read, by partition."""


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """Sorted, so that equal offsets have equal texts: Spark compares those."""
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
    """Where a query begins, marked so that the end of its first batch can be told to remember it."""
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
    """Where a batch begins: what its end remembers, else what Spark says."""
    remembered = end.get(INITIAL)
    return offsets_from_json(remembered if isinstance(remembered, dict) else start)


def as_text(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps(offsets_to_json(offsets))
