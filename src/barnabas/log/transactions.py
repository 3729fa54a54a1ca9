"""Which transactions were aborted in a range of offsets, from the .txnindex files. A lost file is rebuilt.

An entry that was read from a file is used only if its batches are in the log."""

import logging

from barnabas.log.producer_state import ProducerState
from barnabas.log.reading import locate
from barnabas.log.rebuild import make_walkable
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.log.txn_index import AbortedTransaction
from barnabas.records.batch import BatchHeader

logger = logging.getLogger(__name__)


def aborted_transactions(log: LogState, from_offset: int, upto_offset: int) -> list[AbortedTransaction]:
    """Aborted transactions that have records in [from_offset, upto_offset)."""
    aborted: list[AbortedTransaction] = []
    try:
        for segment in log.segments[log.segment_for(from_offset) :]:
            for entry in _entries(log, segment):
                if entry.last_offset >= from_offset and entry.first_offset < upto_offset:
                    aborted.append(entry)
                # All later transactions began at or after the end of the range.
                if entry.last_stable_offset >= upto_offset:
                    return aborted
    except OSError as problem:
        raise log.storage_error(problem) from problem
    return aborted


def _entries(log: LogState, segment: Segment) -> list[AbortedTransaction]:
    index = segment.txn_index
    entries = index.entries()
    if entries is not None and not index.verified:
        index.verified = all(_is_in_the_log(log, segment, entry) for entry in entries)
    return entries if entries is not None and index.verified else rebuild_transaction_index(log, segment)


def _is_in_the_log(log: LogState, segment: Segment, entry: AbortedTransaction) -> bool:
    """Whether the log has the marker of the entry, the first batch of the transaction, and the first batch of
    the transaction that was still open then."""
    marker = _batch_at(log, entry.last_offset) if entry.last_offset < segment.next_offset else None
    if marker is None or not marker.is_control or marker.producer_id != entry.producer_id:
        return False
    if log.config.cleanup_compact:
        # Compaction removes data batches, so the first batches may be gone.
        return True
    first = _batch_at(log, entry.first_offset)
    if entry.first_offset >= log.log_start_offset and (
        first is None or first.producer_id != entry.producer_id
    ):
        return False
    stable = entry.last_stable_offset
    return (
        stable == entry.last_offset + 1 or stable < log.log_start_offset or _opens_another(log, stable, entry)
    )


def _opens_another(log: LogState, offset: int, entry: AbortedTransaction) -> bool:
    header = _batch_at(log, offset) if offset < entry.last_offset else None
    if header is None or header.is_control or not header.is_transactional:
        return False
    return header.producer_id != entry.producer_id


def _batch_at(log: LogState, offset: int) -> BatchHeader | None:
    """The header of the batch that begins at `offset`."""
    segment = log.segments[log.segment_for(offset)]
    batch = locate(log, segment, offset)
    header = segment.window().header(batch[0]) if batch else None
    return header if header is not None and header.base_offset == offset else None


def rebuild_transaction_index(log: LogState, segment: Segment) -> list[AbortedTransaction]:
    """Replay the log up to and through the segment, from the newest snapshot at or below its start."""
    logger.warning("the transaction index of %s is missing or damaged; rebuilding it", segment)
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
