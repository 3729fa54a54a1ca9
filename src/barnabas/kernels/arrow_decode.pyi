from array import array

from barnabas.kernels.shared import OpenBatch

class BinaryColumn:
    rows: int
    nulls: int
    ends: array[int]
    bits: bytearray
    data: bytearray
    def trim(self) -> None: ...

class ColumnBuffers:
    """Rows of records as the growing buffers of Arrow columns.

    `wanted` may have key, value, headers, offset and timestamp; other names are ignored: the caller fills
    topic, partition and timestampType, which are the same for a whole batch."""

    count: int  # rows
    size: int  # bytes of keys, values and headers
    # Where the last append_batch stopped in its batch, and how many records are left there.
    position: int
    left: int
    next_offset: int
    # None where not wanted.
    keys: BinaryColumn | None
    values: BinaryColumn | None
    header_ends: array[int] | None
    header_names: BinaryColumn
    header_values: BinaryColumn
    offsets: array[int] | None
    timestamps: array[int] | None  # ms

    def __init__(self, wanted: frozenset[str]) -> None: ...
    def append_batch(
        self, batch: OpenBatch, first_offset: int, last_offset: int, rows_max: int, bytes_max: int
    ) -> int:
        """Append the records of one batch from `first_offset` to `last_offset`, both included; returns the
        offset to continue at.

        `rows_max` and `bytes_max` are what the columns may hold in all; one row always fits, and no column
        grows beyond Arrow's 32-bit offsets. Raises ValueError if a record is malformed: the rows before it
        have been appended then, and next_offset says where it is."""
    def trim(self) -> None: ...
