"""Damaged batches in a log: finding one that a follower could not take, and replacing damage with the bytes
that another replica has.

Replicas hold the same bytes for the same offsets, so a copy that fits the damaged range exactly is what was
there. Where compaction has changed one of the two, it does not fit, and the damage stays."""

import logging

from crc32c import crc32c

from barnabas.errors import KafkaError
from barnabas.kernels.replica_batches import GOOD, check_batches
from barnabas.log import names
from barnabas.log.disk import write_fully
from barnabas.log.reading import locate
from barnabas.log.rebuild import verify
from barnabas.log.scan import CorruptRange, read_range
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.log.transactions import rebuild_transaction_index
from barnabas.log.truncation import rebuild_producers
from barnabas.records.batch import crc_is_valid

logger = logging.getLogger(__name__)

EPOCH_MAX = 2**31 - 1


def check_batch_at(log: LogState, offset: int) -> bool:
    """Check the batch that holds `offset`; True if it is damaged and was not known to be. A fetch sends bytes
    without looking at them, so somebody else notices a bad checksum first."""
    segment = log.segments[log.segment_for(offset)]
    try:
        is_new = _check_batch(log, segment, offset)
    except KafkaError:
        # The headers cannot be followed to the batch.
        is_new = verify(segment)
    if is_new:
        log.save_corrupt_ranges()
    return is_new


def _check_batch(log: LogState, segment: Segment, offset: int) -> bool:
    batch = locate(log, segment, offset)
    if batch is None or any(corrupt.start == batch[0] for corrupt in segment.bad):
        return False
    position, size, _ = batch
    window = segment.window()
    header = window.header(position)
    if header is not None and crc_is_valid(read_range(log.disk, segment.file(), position, size), 0, size):
        return False
    later = window.header(position + size)
    is_last = position + size == segment.size
    if header is None or not (is_last or (later is not None and later.base_offset >= header.next_offset)):
        # It is not known where the next good batch begins.
        return verify(segment)
    logger.error("%s: offsets %d to %d are damaged", log.partition, header.base_offset, header.last_offset)
    corrupt = CorruptRange(
        segment.base_offset, position, position + size, header.base_offset, header.next_offset
    )
    segment.bad = sorted([*segment.bad, corrupt])
    return True


def fits(corrupt: CorruptRange, data: memoryview) -> bool:
    """Whether these bytes of another replica are what the damaged range held."""
    fault, end, first, last, _, _ = check_batches(data, corrupt.first_offset, -1, EPOCH_MAX, crc32c)
    size = corrupt.end - corrupt.start
    return (fault, end, len(data), first) == (GOOD, size, size, corrupt.first_offset) and (
        last < corrupt.next_offset
    )


def replace_damage(log: LogState, corrupt: CorruptRange, data: memoryview) -> bool:
    """Write the bytes that another replica has for a damaged range; False if they do not fit."""
    segment = next((each for each in log.segments if each.base_offset == corrupt.base_offset), None)
    if segment is None or corrupt not in segment.bad or not fits(corrupt, data):
        return False
    try:
        file = log.disk.open(segment.path(names.LOG), write=True)
        write_fully(log.disk, file.fd, data, corrupt.start)
        log.disk.fsync(file.fd)
        segment.bad = [other for other in segment.bad if other != corrupt]
        log.save_corrupt_ranges()
        if check_batches(data, corrupt.first_offset, -1, EPOCH_MAX, crc32c)[5]:
            _replay(log, segment)
    except OSError as problem:
        raise log.storage_error(problem) from problem
    logger.warning(
        "%s: offsets %d to %d were damaged and are replaced with the copy of another replica",
        log.partition,
        corrupt.first_offset,
        corrupt.next_offset - 1,
    )
    return True


def _replay(log: LogState, segment: Segment) -> None:
    """Batches of producers are back: snapshots and transaction indexes after them were made without them."""
    for offset in [each for each in log.producers.snapshots if each > segment.base_offset]:
        log.producers.delete_snapshot(offset)
    rebuild_producers(log, log.log_end_offset)
    for later in log.segments[log.segment_for(segment.base_offset) :]:
        rebuild_transaction_index(log, later)
