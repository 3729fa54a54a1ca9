"""Batches as a leader leaves them in its log."""

import struct

from barnabas.records.batch import LOG_OVERHEAD


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `position` its offset and leader epoch, in place; both lie outside the CRC."""
    struct.pack_into(">q", buffer, position, base_offset)
    struct.pack_into(">i", buffer, position + LOG_OVERHEAD, leader_epoch)
