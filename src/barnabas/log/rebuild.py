"""Rebuilding the indexes and the list of damaged bytes of a segment from the segment itself.

Reads every byte and checks every batch. Used by recovery after an unclean stop, and by lookups when an index
turns out to be wrong."""

import logging
from dataclasses import dataclass, field

from barnabas.errors import KafkaError
from barnabas.log.scan import WINDOW_BYTES, CorruptRange, Damaged, Run, Verifier
from barnabas.log.segment import Segment
from barnabas.records.batch import BatchHeader

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Examination:
    """The result of checking a whole segment. `valid_end` is where the last good batch ends."""

    valid_end: int = 0
    next_offset: int = 0
    first_timestamp: int | None = None
    max_timestamp: int = -1
    max_timestamp_offset: int = 0
    entries: list[tuple[int, int]] = field(default_factory=list)
    time_entries: list[tuple[int, int]] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    bad: list[CorruptRange] = field(default_factory=list)
    has_producers: bool = False


def examine(segment: Segment, limit: int, *, gaps: bool, last: bool) -> Examination:
    """Check every batch of a segment whose offsets must stay below `limit`.

    Damage with good batches after it is a corrupt range. Damage up to the end is an incomplete write if this
    is the last segment of the log (the caller cuts it off), and a corrupt range otherwise."""
    examination = Examination(next_offset=segment.base_offset, max_timestamp_offset=segment.base_offset)
    if segment.size == 0:
        return examination
    indexed_at = 0
    pending: Damaged | None = None
    verifier = Verifier(segment.window(WINDOW_BYTES), segment.base_offset, limit, gaps=gaps)
    for item in verifier.walk():
        if isinstance(item, Damaged):
            pending = item
            continue
        position, header = item
        if pending is not None:
            examination.bad.append(_range(segment, pending, position, header.base_offset))
        _note_batch(examination, segment, header)
        # The batch after damage gets its own index entry, so that a search never has to cross the bad bytes.
        if pending is not None or position - indexed_at > segment.index_interval:
            _index_batch(examination, segment, position, header)
            indexed_at = position
        pending = None
        examination.valid_end = position + header.size
        examination.next_offset = header.next_offset
        run = verifier.run(
            segment.index_interval, indexed_at, examination.max_timestamp, examination.max_timestamp_offset
        )
        if run is not None:
            indexed_at = _note_run(examination, segment, run, indexed_at)
    if pending is not None and not last:
        examination.bad.append(_range(segment, pending, segment.size, limit))
        examination.valid_end, examination.next_offset = segment.size, limit
    return examination


def _range(segment: Segment, damaged: Damaged, end: int, next_offset: int) -> CorruptRange:
    return CorruptRange(segment.base_offset, damaged.position, end, damaged.first_offset, next_offset)


def _note_batch(examination: Examination, segment: Segment, header: BatchHeader) -> None:
    if header.producer_id >= 0:
        examination.has_producers = True
    if examination.first_timestamp is None:
        examination.first_timestamp = header.max_timestamp
    if header.max_timestamp > examination.max_timestamp:
        examination.max_timestamp, examination.max_timestamp_offset = header.max_timestamp, header.last_offset
    if header.leader_epoch >= 0 and (
        not examination.epochs or header.leader_epoch > examination.epochs[-1][0]
    ):
        examination.epochs.append((header.leader_epoch, header.base_offset))


def _note_run(examination: Examination, segment: Segment, run: Run, indexed_at: int) -> int:
    """Returns the position of the last index entry afterwards."""
    for last_offset, position, highest, highest_offset in run.entries:
        examination.entries.append((last_offset - segment.base_offset, position))
        examination.max_timestamp, examination.max_timestamp_offset = highest, highest_offset
        _time_entry(examination, segment)
        indexed_at = position
    examination.max_timestamp, examination.max_timestamp_offset = run.max_timestamp, run.max_timestamp_offset
    examination.has_producers |= run.has_producers
    examination.valid_end, examination.next_offset = run.end, run.next_offset
    return indexed_at


def _index_batch(examination: Examination, segment: Segment, position: int, header: BatchHeader) -> None:
    examination.entries.append((header.last_offset - segment.base_offset, position))
    _time_entry(examination, segment)


def _time_entry(examination: Examination, segment: Segment) -> None:
    newest = examination.time_entries[-1][0] if examination.time_entries else -1
    if examination.max_timestamp > newest:
        examination.time_entries.append(
            (examination.max_timestamp, examination.max_timestamp_offset - segment.base_offset)
        )


def install(segment: Segment, examination: Examination) -> None:
    """Give the segment the indexes and bounds of its examination; the bytes after `valid_end` are cut off."""
    segment.adopt(examination.valid_end, examination.next_offset, examination.bad)
    segment.adopt_timestamps(
        examination.first_timestamp, examination.max_timestamp, examination.max_timestamp_offset
    )
    _time_entry(examination, segment)
    segment.adopt_indexes(examination.entries, examination.time_entries)


def rebuild_indexes(segment: Segment) -> None:
    """An index contradicted its segment: rebuild both indexes. New damage is added to the segment's list."""
    logger.error("the indexes of %s are damaged; rebuilding them", segment)
    end = segment.next_offset
    examination = examine(segment, end, gaps=True, last=False)
    examination.next_offset = end
    install(segment, examination)


def make_walkable(segment: Segment) -> bool:
    """Make sure that the headers can be followed to the end; True if damage had to be marked to do so."""
    try:
        for _ in segment.headers():
            pass
    except KafkaError:
        rebuild_indexes(segment)
        return True
    return False


def verify(segment: Segment) -> bool:
    """Check every batch; True if there is damage that was not known before."""
    examination = examine(segment, segment.next_offset, gaps=True, last=False)
    if examination.bad == segment.bad:
        return False
    logger.error("%s is damaged: %s", segment, examination.bad)
    examination.next_offset = segment.next_offset
    install(segment, examination)
    return True
