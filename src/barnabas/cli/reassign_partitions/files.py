"""The JSON files of reassign-partitions: which topics to move, and which replicas partitions are to have."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from barnabas.cli.failures import ToolError
from barnabas.client.admin import TopicPartitionReplica
from barnabas.client.types import TopicPartition

# The word for a log directory that the broker may choose.
ANY_DIRECTORY = "any"
VERSION = 1

_H = TypeVar("_H", bound=Hashable)


class Reassignment(NamedTuple):
    """The replicas that partitions are to have, and the log directories of those that have one."""

    replicas: list[tuple[TopicPartition, list[int]]]
    directories: dict[TopicPartitionReplica, str]

    def partitions(self) -> list[TopicPartition]:
        return sorted({partition for partition, _ in self.replicas})


def read_reassignment(path: Path) -> Reassignment:
    document = _document(path)
    replicas: list[tuple[TopicPartition, list[int]]] = []
    directories: dict[TopicPartitionReplica, str] = {}
    for entry in _entries(path, document, "partitions"):
        partition = TopicPartition(_field(path, entry, "topic", str), _field(path, entry, "partition", int))
        brokers = _numbers(path, entry)
        paths = entry.get("log_dirs", [ANY_DIRECTORY] * len(brokers))
        if len(paths) != len(brokers):
            raise ToolError(
                f"Size of replicas list {brokers} is different from size of log dirs list "
                f"[{', '.join(map(str, paths))}] for partition {name_of(partition)}"
            )
        replicas.append((partition, brokers))
        for broker, directory in zip(brokers, paths, strict=True):
            if directory != ANY_DIRECTORY:
                directories[TopicPartitionReplica(*partition, broker)] = str(directory)
    return Reassignment(replicas, directories)


def read_topics(path: Path) -> list[str]:
    topics = [_field(path, entry, "topic", str) for entry in _entries(path, _document(path), "topics")]
    if repeated := duplicates(topics):
        raise ToolError(
            f"List of topics to reassign contains duplicate entries: [{', '.join(map(str, repeated))}]"
        )
    return topics


def check_executable(reassignment: Reassignment) -> dict[TopicPartition, list[int]]:
    """The replicas by partition; an error if a partition or a broker is repeated, or something is missing."""
    if not reassignment.replicas:
        raise ToolError("Partition reassignment list cannot be empty")
    if not all(brokers for _, brokers in reassignment.replicas):
        raise ToolError("Partition replica list cannot be empty")
    if repeated := duplicates(partition for partition, _ in reassignment.replicas):
        names = ",".join(map(name_of, repeated))
        raise ToolError(f"Partition reassignment contains duplicate topic partitions: {names}")
    wrong = [
        f"{name_of(partition)} contains multiple entries for {joined(duplicates(brokers))}"
        for partition, brokers in reassignment.replicas
        if duplicates(brokers)
    ]
    if wrong:
        raise ToolError(f"Partition replica lists may not contain duplicate entries: {'. '.join(wrong)}")
    return dict(reassignment.replicas)


def reassignment_json(
    replicas: Mapping[TopicPartition, Sequence[int]],
    directories: Mapping[TopicPartitionReplica, str | None] | None = None,
) -> str:
    """A document that --execute accepts, with the directories of the replicas where they are known."""
    known = directories or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(brokers),
            "log_dirs": [
                known.get(TopicPartitionReplica(*partition, broker)) or ANY_DIRECTORY for broker in brokers
            ],
        }
        for partition, brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"))


def name_of(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def names_of(partitions: Iterable[TopicPartition], separator: str = ",") -> str:
    return separator.join(map(name_of, sorted(partitions)))


def joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def duplicates(items: Iterable[_H]) -> list[_H]:
    """Each item that is there more than once."""
    seen: set[_H] = set()
    repeated: dict[_H, None] = {}
    for item in items:
        if item in seen:
            repeated[item] = None
        seen.add(item)
    return list(repeated)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise ToolError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise ToolError(f"{path} must contain a JSON object.")
    if (version := document.get("version", VERSION)) != VERSION:
        raise ToolError(f"Not supported version field value {version}")
    return document


def _entries(path: Path, document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = document.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ToolError(f"{path}: {name!r} must be a list of objects.")
    return entries


def _field(path: Path, entry: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = entry.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ToolError(f"{path}: every entry needs a field {name!r} with a value of type {kind.__name__}.")
    return value


def _numbers(path: Path, entry: dict[str, Any]) -> list[int]:
    brokers: list[int] = _field(path, entry, "replicas", list)
    if not all(isinstance(broker, int) for broker in brokers):
        raise ToolError(f"{path}: 'replicas' must be a list of broker ids.")
    return brokers
