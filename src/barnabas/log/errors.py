"""Errors of the log that are not Kafka's: they stop a start or ask the caller to do something else."""


class LogDirError(Exception):
    """A log directory must not be used: it is locked, another node's, or contradicts another one. One
    sentence."""


class UnexpectedOffsetError(Exception):
    """A follower was handed batches that begin below its log's end."""

    def __init__(self, first_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"batches from offset {first_offset} do not follow a log that ends at {log_end_offset}"
        )
        self.first_offset = first_offset


class DamagedIndexError(Exception):
    """An index contradicts its segment; it has to be rebuilt."""


class CorruptSnapshotError(Exception):
    """The snapshot cannot be used; an older one and the log after it give the same state."""


class TornWriteError(OSError):
    """A write failed half way and could not be undone: the log must not be appended to any more."""
