"""The small text files of a log directory: offset checkpoints, meta.properties, the clean-shutdown marker
and partition.metadata, byte for byte as Kafka writes them.

A checkpoint is a version line, a count line and one line per entry. It is replaced atomically. One that
cannot be read is reported and treated as absent: everything in it can be rebuilt from the log."""

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.ids import TopicPartition, Uuid, uuid_from_string, uuid_to_string
from barnabas.log import names
from barnabas.log.disk import Disk, put_file, read_file, replace_file

logger = logging.getLogger(__name__)

CHECKPOINT_VERSION = 0
META_PROPERTIES_VERSION = 1


def write_checkpoint(disk: Disk, path: Path, lines: Iterable[str]) -> None:
    replace_file(disk, path, checkpoint_bytes(lines))


def checkpoint_bytes(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    text = "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(entries), *entries))
    return text.encode()


def read_checkpoint(disk: Disk, path: Path, fields: int) -> list[tuple[str, ...]] | None:
    """The entries as tuples of `fields` words, or None when the file is missing or damaged."""
    data = read_file(disk, path)
    if data is None:
        return None
    try:
        lines = data.decode().splitlines()
        if not lines:
            return None
        if int(lines[0]) != CHECKPOINT_VERSION or int(lines[1]) != len(lines) - 2:
            raise ValueError("the version or the number of entries is wrong")
        entries = [tuple(line.split()) for line in lines[2:]]
        if any(len(entry) != fields for entry in entries):
            raise ValueError("a line has the wrong number of words")
    except (ValueError, IndexError) as problem:
        logger.error("checkpoint %s is damaged (%s); it is rebuilt", path, problem)
        return None
    return entries


def write_offsets(disk: Disk, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    replace_file(disk, path, offsets_bytes(offsets))


def offsets_bytes(offsets: Mapping[TopicPartition, int]) -> bytes:
    return checkpoint_bytes(f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())


def read_offsets(disk: Disk, path: Path) -> dict[TopicPartition, int]:
    entries = read_checkpoint(disk, path, fields=3) or []
    try:
        return {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in entries}
    except ValueError as problem:
        logger.error("checkpoint %s is damaged (%s); it is rebuilt", path, problem)
        return {}


class MetaProperties(NamedTuple):
    """Whose log directory this is: a broker refuses to start on a directory of another cluster or node."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


def write_meta_properties(disk: Disk, directory: Path, meta: MetaProperties) -> None:
    lines = (
        f"cluster.id={meta.cluster_id}",
        f"directory.id={uuid_to_string(meta.directory_id)}",
        f"node.id={meta.node_id}",
        f"version={META_PROPERTIES_VERSION}",
    )
    replace_file(disk, directory / names.META_PROPERTIES, "".join(f"{line}\n" for line in lines).encode())


def read_meta_properties(disk: Disk, directory: Path) -> MetaProperties | None:
    """The content of meta.properties, or None if there is no such file; ValueError if it cannot be parsed."""
    data = read_file(disk, directory / names.META_PROPERTIES)
    if data is None:
        return None
    lines = (line.strip() for line in data.decode().splitlines())
    pairs = (line.partition("=") for line in lines if "=" in line and line[0] not in "#!")
    values = {key.strip(): value.strip() for key, _, value in pairs}
    try:
        node = values["broker.id"] if "broker.id" in values else values["node.id"]
        return MetaProperties(values["cluster.id"], int(node), uuid_from_string(values["directory.id"]))
    except (KeyError, ValueError) as problem:
        missing = f"it has no {problem}" if isinstance(problem, KeyError) else str(problem)
        raise ValueError(
            f"{directory / names.META_PROPERTIES} cannot be read: {missing}. "
            "Restore the file from a backup, or choose another data directory."
        ) from problem


def write_clean_shutdown(disk: Disk, directory: Path, broker_epoch: int = -1) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(disk, directory / names.CLEAN_SHUTDOWN, content.encode())


def clean_shutdown_epoch(disk: Disk, directory: Path) -> int:
    """The broker epoch of the start that ended cleanly in this directory; -1 after an unclean stop."""
    content = read_file(disk, directory / names.CLEAN_SHUTDOWN)
    try:
        epoch = json.loads(content or b"{}").get("brokerEpoch", -1)
    except (ValueError, AttributeError):
        return -1
    return epoch if isinstance(epoch, int) else -1


def take_clean_shutdown(disk: Disk, directory: Path) -> bool:
    """Whether the directory was shut down cleanly. The marker is removed: it is valid for one start only."""
    if read_file(disk, directory / names.CLEAN_SHUTDOWN) is None:
        return False
    disk.unlink(directory / names.CLEAN_SHUTDOWN)
    disk.fsync_dir(directory)
    return True


def write_partition_metadata(disk: Disk, directory: Path, topic_id: Uuid) -> None:
    """The file is not synced: a caller that creates many logs syncs them all at once."""
    content = f"version: 0\ntopic_id: {uuid_to_string(topic_id)}"
    put_file(disk, directory / names.PARTITION_METADATA, content.encode())


def read_partition_metadata(disk: Disk, directory: Path) -> Uuid | None:
    data = read_file(disk, directory / names.PARTITION_METADATA)
    if data is None:
        return None
    try:
        version, topic_id = (line.split(":", 1)[1].strip() for line in data.decode().splitlines()[:2])
        if version != "0":
            raise ValueError(f"version {version} is unknown")
        return uuid_from_string(topic_id)
    except (ValueError, IndexError) as problem:
        logger.error("%s is damaged (%s)", directory / names.PARTITION_METADATA, problem)
        return None
