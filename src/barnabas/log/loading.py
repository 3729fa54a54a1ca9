"""Opening a log: from the files of its directory to a Log that can be appended to.

After a clean stop only the end of the last segment is read. After an unclean stop every batch from the
recovery point on is checked: an incomplete batch at the end is cut off, damage with good data after it is
kept and marked, and the indexes of those segments are rebuilt. The indexes of the last segment are rebuilt in
memory only, since files would not be trusted after another unclean stop. Missing index files are always
rebuilt. Nothing is synced, and no file stays open."""

import logging
from dataclasses import dataclass
from pathlib import Path

from barnabas.config.topic import TopicConfig
from barnabas.log import names
from barnabas.log.checkpoints import read_checkpoint, read_partition_metadata, write_partition_metadata
from barnabas.log.compaction.swapping import finish_interrupted_swaps
from barnabas.log.disk import Disk
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.log import Log
from barnabas.log.producer_state import ProducerState
from barnabas.log.rebuild import Examination, examine, install, make_walkable
from barnabas.log.scan import CorruptRange
from barnabas.log.segment import Segment
from barnabas.log.state import Identity, Services
from barnabas.log.transactions import rebuild_transaction_index
from barnabas.log.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Marks:
    """What the checkpoints of the log directory say about a log. `clean`: it was closed cleanly."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    clean: bool = False
    producer_expiration_ms: int = 24 * 3600 * 1000


def open_log(identity: Identity, services: Services, config: TopicConfig, marks: Marks) -> Log:
    """Open the log in `identity.directory`, or create a new one there. OSError if the disk fails."""
    disk, directory = services.disk, identity.directory
    listing = finish_interrupted_swaps(disk, directory, _listing(disk, directory))
    stored_id = read_partition_metadata(disk, directory) if names.PARTITION_METADATA in listing else None
    if stored_id is None and identity.topic_id is not None:
        write_partition_metadata(disk, directory, identity.topic_id)
    identity = identity._replace(topic_id=identity.topic_id or stored_id)
    producers = ProducerState(disk, directory, listing)
    log = Log(identity, services, config, LeaderEpochs(disk, directory), producers)
    _Loader(log, marks, listing).load()
    for segment in log.segments:
        segment.close_files()
    return log


def _listing(disk: Disk, directory: Path) -> list[str]:
    try:
        return disk.listdir(directory)
    except FileNotFoundError:
        disk.mkdir(directory)
        return []


class _Loader:
    def __init__(self, log: Log, marks: Marks, listing: list[str]) -> None:
        self._log = log
        self._marks = marks
        self._listing = listing
        # The position, in the list of segments, of the first one whose bytes were all checked.
        self._examined_from: int | None = None
        # Base offsets of examined segments without a batch of an idempotent producer.
        self._without_producers: set[int] = set()
        self._changed = False

    def load(self) -> None:
        log, marks = self._log, self._marks
        segments = self._existing_segments()
        log.set_segments(segments)
        self._load_corrupt_ranges()
        if segments:
            if not marks.clean:
                self._recover(log.segment_for(marks.recovery_point))
            self._activate_last()
        if segments and log.active.next_offset < marks.log_start_offset:
            self._drop_all()
        if not log.segments:
            log.add_segment(log.new_segment(marks.log_start_offset))
        log.log_end_offset = log.active.next_offset
        log.log_start_offset = min(max(marks.log_start_offset, log.bases[0]), log.log_end_offset)
        log.high_watermark = min(max(marks.high_watermark, log.log_start_offset), log.log_end_offset)
        log.recovery_point = min(
            log.log_end_offset if marks.clean else marks.recovery_point, log.log_end_offset
        )
        self._load_epochs()
        self._load_producers()
        if self._changed:
            log.save_corrupt_ranges()
        log.update_flush_limit()

    def _existing_segments(self) -> list[Segment]:
        log = self._log
        files = [parsed for name in self._listing if (parsed := names.parse_offset_file(name))]
        bases = sorted(offset for offset, kind, pending in files if kind == names.LOG and not pending)
        for offset, kind, pending in files:
            if kind in names.SEGMENT_SUFFIXES and not pending and offset not in bases:
                logger.warning("%s: removing %020d%s, which has no segment", log.directory, offset, kind)
                log.disk.unlink(names.segment_file(log.directory, offset, kind))
        segments = [Segment(log.disk, log.directory, base, log.config, log.clock.now_ms()) for base in bases]
        for segment, end in zip(segments, bases[1:], strict=False):
            segment.next_offset = end
        for segment in segments:
            segment.open()
        return segments

    def _load_corrupt_ranges(self) -> None:
        log = self._log
        if names.CORRUPT_RANGES not in self._listing:
            return
        rows = read_checkpoint(log.disk, log.directory / names.CORRUPT_RANGES, fields=5) or []
        for row in rows:
            corrupt = CorruptRange(*map(int, row))
            for segment in log.segments:
                if segment.base_offset == corrupt.base_offset and corrupt.end <= segment.size:
                    segment.bad.append(corrupt)
        log.damaged = bool(log.corrupt_ranges)

    def _recover(self, place: int) -> None:
        """Check all segments from this position in the list on."""
        self._examined_from = place if self._examined_from is None else min(place, self._examined_from)
        for number in range(place, len(self._log.segments)):
            self._recover_segment(number)

    def _recover_segment(self, place: int) -> None:
        log = self._log
        segment = log.segments[place]
        last = place == len(log.segments) - 1
        limit = segment.offset_limit + 1 if last else log.bases[place + 1]
        segment.active = last
        # If the segment is not the last, the base offset of the next one confirms its last batch.
        examination = examine(segment, limit, gaps=log.config.cleanup_compact or not last, last=last)
        self._report(segment, examination)
        if examination.bad != segment.bad:
            self._changed = True
        install(segment, examination)
        if not examination.has_producers:
            self._without_producers.add(segment.base_offset)
        if not last:
            segment.next_offset = limit
        for epoch, start in examination.epochs:
            if epoch > log.leader_epochs.latest:
                log.leader_epochs.assign(epoch, start)

    def _report(self, segment: Segment, examination: Examination) -> None:
        for corrupt in examination.bad:
            logger.error(
                "%s: bytes %d to %d of %s, offsets %d to %d, are damaged; only fetches of them fail",
                self._log.partition,
                corrupt.start,
                corrupt.end,
                segment,
                corrupt.first_offset,
                corrupt.next_offset - 1,
            )
        if examination.valid_end < segment.size:
            logger.warning(
                "%s: cutting off %d bytes after the last complete batch of %s; the next offset is %d",
                self._log.partition,
                segment.size - examination.valid_end,
                segment,
                examination.next_offset,
            )

    def _activate_last(self) -> None:
        """Make the last segment active; one that was just recovered is active already."""
        log = self._log
        segment = log.active
        if not segment.active and not segment.activate():
            logger.error("%s: %s was not closed cleanly; recovering it", log.partition, segment)
            segment.release()
            self._recover(len(log.segments) - 1)

    def _drop_all(self) -> None:
        """Somebody removed files: the rest of the log ends before the log start offset."""
        log = self._log
        logger.error(
            "%s ends at offset %d, below its log start offset; removing its segments",
            log.partition,
            log.active.next_offset,
        )
        for segment in log.segments:
            segment.release()
            for suffix in names.SEGMENT_SUFFIXES:
                log.disk.unlink(segment.path(suffix))
        log.set_segments([])
        log.leader_epochs.clear()
        self._changed = True

    def _load_epochs(self) -> None:
        """A lost epoch checkpoint is rebuilt from the batches, which carry their epochs."""
        log = self._log
        epochs = log.leader_epochs
        if not epochs.loaded:
            self._find_epochs()
        if epochs.entries and not epochs.loaded and not log.unflushed:
            # Otherwise the next flush saves them.
            epochs.save()
        # An epoch that begins exactly at the end is kept: its leader has not written anything yet.
        epochs.truncate_from_end(log.log_end_offset + 1)
        epochs.truncate_from_start(log.log_start_offset)

    def _find_epochs(self) -> None:
        if self._examined_from == 0:
            return
        epochs = self._log.leader_epochs
        epochs.forget()
        for segment in self._log.segments:
            self._changed |= make_walkable(segment)
            for _, header in segment.headers():
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)

    def _load_producers(self) -> None:
        """Load the newest snapshot that can be trusted and replay the batches after it.

        The replay also rebuilds the transaction indexes of examined segments, so it begins at or before
        them."""
        log = self._log
        producers, end = log.producers, log.log_end_offset
        first = self._examined_from
        examined_base = end if first is None or first >= len(log.bases) else log.bases[first]
        start = producers.load_newest(log.log_start_offset, min(examined_base, end))
        for segment in log.segments[log.segment_for(start) :] if start < end else []:
            if segment.base_offset > start:
                producers.take_snapshot(segment.base_offset, replace=True)
            aborted: list[AbortedTransaction] = []
            if segment.base_offset not in self._without_producers:
                self._changed |= make_walkable(segment)
                aborted = producers.replay(segment, start, end)
            if segment.base_offset >= examined_base:
                segment.txn_index.start(aborted)
        if start < end:
            producers.distrust_snapshot(end)
        producers.end_offset = end
        producers.expire(log.clock.now_ms(), self._marks.producer_expiration_ms)
        for path in producers.keep_snapshots(set(log.bases), log.log_start_offset, end):
            log.trash.add_leftover(path)
        producers.forget_replicated(log.high_watermark)
        if log.active.txn_index.entries() is None:
            rebuild_transaction_index(log, log.active)
