"""The names of files and directories of a log, exactly as in Kafka. Pure functions on strings."""

import re
import uuid
from pathlib import Path

from barnabas.ids import TopicPartition

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CORRUPT_RANGES = "corrupt-ranges-checkpoint"

META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

_PENDING_CHECKPOINT = re.compile(r".+-offset-checkpoint\.\d+\.next")
_OFFSET_FILE = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?"
)
_PARTITION_DIRECTORY = re.compile(r"(.+)-(\d+)")
_DELETE_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-delete")
_STRAY_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-stray")
_FUTURE_DIRECTORY = re.compile(r"(.+)-(\d+)\.[0-9a-f]{32}-future")
# Kafka shortens long topic names so that the new name of the directory is not too long for a file name.
_DIRECTORY_LENGTH_MAX = 255


def segment_file(directory: Path, base_offset: int, suffix: str) -> Path:
    return directory / f"{base_offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str, str] | None:
    """(offset, kind, pending suffix or "") of a file named by an offset, or None for any other file."""
    match = _OFFSET_FILE.fullmatch(name)
    return (int(match[1]), match[2], match[3] or "") if match else None


def parse_partition_directory(name: str) -> TopicPartition | None:
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or is_delete_directory(name) or _STRAY_DIRECTORY.fullmatch(name):
        return None
    return TopicPartition(match[1], int(match[2]))


def is_delete_directory(name: str) -> bool:
    return _DELETE_DIRECTORY.fullmatch(name) is not None


def parse_future_directory(name: str) -> TopicPartition | None:
    """The partition of a copy. The name of a very long topic is shortened, so no topic has it."""
    match = _FUTURE_DIRECTORY.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def future_directory_name(partition: TopicPartition) -> str:
    """The name of a copy that will take the place of the log when it is complete."""
    return _renamed(partition, "future")


def delete_directory_name(partition: TopicPartition) -> str:
    """The name of a directory that will be removed soon, or at the next start."""
    return _renamed(partition, "delete")


def stray_directory_name(partition: TopicPartition) -> str:
    """The name of a directory whose topic is not in the metadata; it is never opened and never removed."""
    return _renamed(partition, "stray")


def _renamed(partition: TopicPartition, fate: str) -> str:
    suffix = f"-{partition.partition}.{uuid.uuid4().hex}-{fate}"
    return partition.topic[: _DIRECTORY_LENGTH_MAX - len(suffix)] + suffix


def pending_checkpoint(name: str, number: int) -> str:
    """The file in which a checkpoint is written, before it takes the place of the old one."""
    return f"{name}.{number}.next"


def is_pending_checkpoint(name: str) -> bool:
    return _PENDING_CHECKPOINT.fullmatch(name) is not None
