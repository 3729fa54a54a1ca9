from array import array

class BinaryColumn:
    rows: int
    nulls: int
    ends: array[int]
    bits: bytearray
    data: bytearray
    def trim(self) -> None: ...

class ColumnBuffers:
    """Rows of records as the growing buffers of Arrow columns.

    Of `wanted`, any of key, value, headers, offset and timestamp are filled; other names (topic, partition,
    timestampType) are the same for a whole batch, and the caller's affair."""

    count: int  # rows
    size: int  # bytes of keys, values and headers
    # Where the last append_batch stopped in its batch: to go on, call it again with these two.
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
        self,
        data: bytes | bytearray | memoryview,
        place: tuple[int, int],
        count: int,
        facts: tuple[int, int, int | None, int],
        bounds: tuple[int, int],
        limits: tuple[int, int],
    ) -> int:
        """Append the records of one batch, decompressed already; gives the offset to go on at.

        `count` records lie in `data` between the two positions of `place`. `facts` are the batch's base
        offset, base timestamp, append time (None where the records have their own) and leader epoch. `bounds`
        are the first and the last offset wanted, both included. `limits` are the rows and the bytes that the
        columns may hold in all; one row fits always, and no column grows beyond Arrow's 32-bit offsets.
        ValueError where a record is malformed: the rows before it are appended then, and next_offset says
        where."""
    def trim(self) -> None: ...
