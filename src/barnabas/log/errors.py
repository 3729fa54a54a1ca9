"""Errors of the log that have no Kafka error code: they stop the start of a broker, or the caller handles
them."""


class LogDirError(Exception):
    """A log directory must not be used: it is locked, belongs to another node, or contradicts another
    directory. The text is one sentence for the person who starts the broker."""


class UnexpectedOffsetError(Exception):
    """A follower was given batches that begin below the end of its log."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"a batch with offsets {first_offset} to {last_offset} does not follow a log that ends at "
            f"{log_end_offset}"
        )
        # The offsets of the first batch that does not follow.
        self.first_offset = first_offset
        self.last_offset = last_offset


class DamagedIndexError(Exception):
    """An index contradicts its segment; it has to be rebuilt."""


class CorruptSnapshotError(Exception):
    """The snapshot cannot be used; an older snapshot and the log after it give the same state."""


class TornWriteError(OSError):
    """A write failed halfway and could not be undone: nothing more must be appended to the log."""
