"""Stamps batches as a leader does."""

import struct

from barnabas.records.batch import LOG_OVERHEAD


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Set the base offset and leader epoch of the batch at `position`; the CRC does not cover them."""
    struct.pack_into(">q", buffer, position, base_offset)
    struct.pack_into(">i", buffer, position + LOG_OVERHEAD, leader_epoch)
