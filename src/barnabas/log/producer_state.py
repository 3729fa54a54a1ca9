"""The producer table of one partition on disk: snapshots beside the segments, and replay of the log after a
snapshot.

A snapshot that cannot be written is skipped, and one that cannot be read is deleted: an older snapshot (or
none) and the log after it lead to the same state, only more slowly."""

import logging
from bisect import bisect_right, insort
from pathlib import Path

from barnabas.log import names
from barnabas.log.disk import Disk, read_file, write_fully
from barnabas.log.errors import CorruptSnapshotError
from barnabas.log.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.log.producers import CompletedTransaction, ProducerTable
from barnabas.log.segment import Segment
from barnabas.log.txn_index import AbortedTransaction
from barnabas.records.batch import BatchHeader
from barnabas.records.builder import Marker, read_marker

logger = logging.getLogger(__name__)


class ProducerState(ProducerTable):
    def __init__(self, disk: Disk, directory: Path, listing: list[str] | None = None) -> None:
        """`listing` is the content of the directory, if the caller has it already."""
        super().__init__()
        self._disk = disk
        self._directory = directory
        self.end_offset = 0
        self.snapshots = sorted(
            parsed[0]
            for parsed in map(
                names.parse_offset_file, disk.listdir(directory) if listing is None else listing
            )
            if parsed and parsed[1:] == (names.SNAPSHOT, "")
        )

    def snapshot_path(self, offset: int) -> Path:
        return names.segment_file(self._directory, offset, names.SNAPSHOT)

    def distrust_snapshot(self, offset: int) -> None:
        """The snapshot at `offset` may be wrong: the next one taken there replaces it."""
        if offset in self.snapshots:
            self.snapshots.remove(offset)

    def take_snapshot(self, offset: int, *, replace: bool = False) -> None:
        """Write a snapshot of the state after all batches below `offset`, unless there is one already."""
        self.end_offset = offset
        if offset in self.snapshots:
            if not replace:
                return
            self.snapshots.remove(offset)
        path = self.snapshot_path(offset)
        try:
            file = self._disk.open(path, write=True, create=True)
            self._disk.truncate(file.fd, 0)
            write_fully(self._disk, file.fd, encode_snapshot(self.entries), 0)
        except OSError as problem:
            logger.warning("producer snapshot %s could not be written: %s", path, problem)
            return
        insort(self.snapshots, offset)

    def load_newest(self, log_start_offset: int, upto: int) -> int:
        """Load the newest readable snapshot at or below `upto`; returns the offset where replay begins."""
        self.load({})
        candidates = self.snapshots[: bisect_right(self.snapshots, upto)]
        for offset in reversed(candidates):
            if offset <= log_start_offset:
                break
            data = read_file(self._disk, self.snapshot_path(offset))
            try:
                self.load(decode_snapshot(data or b""))
            except CorruptSnapshotError as problem:
                logger.error("producer snapshot %s is damaged: %s", self.snapshot_path(offset), problem)
                self.delete_snapshot(offset)
                continue
            self.end_offset = offset
            return offset
        self.end_offset = log_start_offset
        return log_start_offset

    def delete_snapshot(self, offset: int) -> None:
        if offset in self.snapshots:
            self.snapshots.remove(offset)
        self._disk.unlink(self.snapshot_path(offset))

    def keep_snapshots(self, bases: set[int], log_start_offset: int, end_offset: int) -> list[Path]:
        """Forget snapshots that belong to no segment or are outside the log; the one at its end stays.

        Snapshots above the end are deleted, since others will be taken there. The files of the other
        forgotten ones are harmless; they are returned for the caller to remove later."""
        rest: list[Path] = []
        for offset in list(self.snapshots):
            if offset > end_offset:
                self.delete_snapshot(offset)
            elif offset <= log_start_offset or (offset not in bases and offset != end_offset):
                self.snapshots.remove(offset)
                rest.append(self.snapshot_path(offset))
        return rest

    def replay(self, segment: Segment, from_offset: int, upto: int) -> list[AbortedTransaction]:
        """Apply the batches of one segment to the state; returns the transactions that were aborted in it."""
        aborted: list[AbortedTransaction] = []
        for position, header in segment.headers():
            if header.base_offset >= upto:
                break
            if header.producer_id < 0 or header.base_offset < from_offset:
                continue
            marker = read_batch_marker(segment, position, header) if header.is_control else None
            completed = self.apply(header, marker, header.base_offset)
            if completed is not None and completed[0].aborted:
                aborted.append(aborted_transaction(*completed))
        return aborted

    def apply(
        self, header: BatchHeader, marker: Marker | None, first_offset: int
    ) -> tuple[CompletedTransaction, int] | None:
        """Apply a batch that is already in the log and needs no check."""
        if not header.is_control:
            self.record_batch(header, first_offset)
        elif marker is not None:
            return self.record_marker(header, marker, first_offset)
        return None


def aborted_transaction(completed: CompletedTransaction, last_stable_offset: int) -> AbortedTransaction:
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )


def read_batch_marker(segment: Segment, position: int, header: BatchHeader) -> Marker | None:
    """The marker in a control batch; None if compaction has removed it."""
    return read_marker(segment.read_batch(position, header.size)) if header.count else None
