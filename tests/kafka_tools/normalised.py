"""Removes from an output what may differ: ids, and the order of what Kafka keeps in hash maps."""

import json
import re
from typing import Any, NamedTuple

NAME = "{name}"


class Printed(NamedTuple):
    code: int
    lines: list[str]


def normalised(output: str, own_topic: str) -> list[str]:
    text = output.replace(own_topic, NAME)
    text = re.sub(r"TopicId: \S{22}", "TopicId: ID", text)
    # Kafka's tool has its own text for the warning about names with dots and underscores.
    lines = [_line(line) for line in text.splitlines() if not line.startswith("WARNING: ")]
    # Topics are described in any order, each followed by its partitions.
    return sorted(lines, key=_topic_of) if any(line.startswith("Topic: ") for line in lines) else lines


def _topic_of(line: str) -> str:
    return line.strip().split("\t")[0]


def _line(line: str) -> str:
    # Kafka's tool for ACLs writes a space before the first entry of a hash set.
    line = line.removeprefix(" ") if line.startswith(" \t(") else line
    if line.startswith("{"):
        return json.dumps(_ordered(json.loads(line)))
    head, separator, configs = line.partition("\tConfigs: ")
    return head + separator + ",".join(sorted(configs.split(",")))


def _ordered(value: Any) -> Any:
    """Sort all lists by their text: brokers, directories and partitions come in any order."""
    if isinstance(value, dict):
        return {key: _ordered(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=str)
    return value
