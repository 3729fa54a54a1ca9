"""Which transactions were aborted in a range of offsets, from the .txnindex files, made anew where one is
lost.

An entry counts only if the marker it names is in the log."""

import logging

from barnabas.log.producer_state import ProducerState
from barnabas.log.reading import locate
from barnabas.log.rebuild import make_walkable
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.log.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)


def aborted_transactions(log: LogState, from_offset: int, upto_offset: int) -> list[AbortedTransaction]:
    """Aborted transactions that have records in [from_offset, upto_offset)."""
    found: list[AbortedTransaction] = []
    try:
        for segment in log.segments[log.segment_for(from_offset) :]:
            for entry in _entries(log, segment):
                if entry.last_offset >= from_offset and entry.first_offset < upto_offset:
                    found.append(entry)
                # From here on only transactions follow that began at or after the end of the range.
                if entry.last_stable_offset >= upto_offset:
                    return found
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return found


def _entries(log: LogState, segment: Segment) -> list[AbortedTransaction]:
    loaded = segment.txn_index.loaded
    entries = segment.txn_index.entries()
    if entries is None or not (loaded or all(_has_marker(log, segment, entry) for entry in entries)):
        entries = rebuild_transaction_index(log, segment)
    return entries


def _has_marker(log: LogState, segment: Segment, entry: AbortedTransaction) -> bool:
    found = locate(log, segment, entry.last_offset)
    header = segment.window().header(found[0]) if found else None
    return (
        header is not None
        and header.is_control
        and header.base_offset == entry.last_offset
        and header.producer_id == entry.producer_id
    )


def rebuild_transaction_index(log: LogState, segment: Segment) -> list[AbortedTransaction]:
    """Replay the log up to and through the segment, from the newest snapshot at or below its start."""
    logger.warning("the transaction index of %s is missing or damaged; it is rebuilt", segment)
    scratch = ProducerState(log.disk, log.directory)
    offset = scratch.load_newest(log.log_start_offset, segment.base_offset)
    for earlier in log.segments[log.segment_for(offset) :]:
        if make_walkable(earlier):
            log.save_corrupt_ranges()
        aborted = scratch.replay(earlier, offset, segment.next_offset)
        if earlier is segment:
            segment.txn_index.start(aborted)
            return aborted
    return []
