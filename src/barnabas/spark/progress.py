"""What a streaming query commits for its group (commitOffsets): where it began, and what it has finished.

The beginning is committed with a mark in the metadata of the commit. A query that is restarted before its
first batch was planned finds it there and begins at the same offsets. Later commits have no mark."""

import hashlib
import json

from barnabas.client.errors import CommitFailedError, ErrorCode, KafkaError
from barnabas.client.types import OffsetAndMetadata
from barnabas.ids import TopicPartition
from barnabas.spark.brokers import Brokers
from barnabas.spark.offsets import Offsets
from barnabas.spark.settings import ReadSettings

MARK = "barnabas.spark.beginning"


class Progress:
    """Does nothing without a group."""

    def __init__(self, brokers: Brokers, settings: ReadSettings) -> None:
        self._brokers = brokers
        self._group: str | None = settings["commitOffsets"]
        # A query that is restarted with other starting options does not use the stored beginning.
        place = hashlib.sha256(str(settings.start).encode()).hexdigest()[:16]
        self._mark = json.dumps({MARK: place})
        self._committed: Offsets = {}

    def kept_beginning(self, partitions: frozenset[TopicPartition]) -> Offsets | None:
        """Where an earlier start of this query began, if it has not finished a batch."""
        if self._group is None:
            return None
        kept = {
            partition: commit.offset
            for partition, commit in self._brokers.committed(self._group, partitions).items()
            if commit.metadata == self._mark
        }
        # Partitions that were added meanwhile are read from their first record on.
        return kept or None

    def keep_beginning(self, offsets: Offsets) -> None:
        self._commit(offsets, self._mark)

    def done(self, offsets: Offsets) -> None:
        """The query has finished everything before these offsets."""
        if offsets != self._committed:
            self._commit(offsets, "")
            self._committed = dict(offsets)

    def _commit(self, offsets: Offsets, metadata: str) -> None:
        if self._group is None:
            return
        try:
            self._brokers.commit(
                self._group,
                {partition: OffsetAndMetadata(offset, metadata) for partition, offset in offsets.items()},
            )
        except CommitFailedError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"The query cannot commit offsets for the group {self._group!r}, because the group has"
                " members. Name a group in commitOffsets that no consumer uses.",
            ) from error
