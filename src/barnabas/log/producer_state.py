"""The producer table of one partition on disk: snapshots beside the segments, and replay of the log after
one.

A snapshot that cannot be written is skipped and one that cannot be read is dropped: an older one (or none)
and the log after it lead to the same state, only later."""

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
        """`listing` is what is in the directory, where that is known."""
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
        """What the snapshot at `offset` says may not be true: the next one taken there replaces it."""
        if offset in self.snapshots:
            self.snapshots.remove(offset)

    def take_snapshot(self, offset: int, *, replace: bool = False) -> None:
        """Write down the state, which is that of all batches below `offset`, unless that was done before."""
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
        """Load the newest sound snapshot at or below `upto`; where replay has to begin."""
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
        """Forget snapshots that belong to no segment, or lie outside the log; the one at its end stays.

        Those above the end are deleted, since others will be taken there. The files of the rest are left for
        the caller to remove when there is time: they do no harm."""
        rest: list[Path] = []
        for offset in list(self.snapshots):
            if offset > end_offset:
                self.delete_snapshot(offset)
            elif offset <= log_start_offset or (offset not in bases and offset != end_offset):
                self.snapshots.remove(offset)
                rest.append(self.snapshot_path(offset))
        return rest

    def replay(self, segment: Segment, from_offset: int, upto: int) -> list[AbortedTransaction]:
        """Fold the batches of one segment into the state; the transactions that were aborted in it."""
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
        """Take in a batch that is in the log already and needs no check."""
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
    """How a control batch ends a transaction; None once compaction has emptied it."""
    return read_marker(segment.read_batch(position, header.size)) if header.count else None
