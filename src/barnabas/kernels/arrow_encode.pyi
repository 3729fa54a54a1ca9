from typing import Any

class BytesInput:
    def __init__(self, first: int, bits: Any, ends: Any, data: Any) -> None: ...

def largest_row(values: BytesInput, keys: BytesInput | None, rows: int) -> int: ...

class TableEncoder:
    """Batches that grow by rows, one per partition; those that are full, or ended by finish(), are in
    `finished` for the caller to take: (partition, room for a header and the records, count, base timestamp,
    highest timestamp).

    A batch has up to `batch_bytes`; a larger record gets one of its own, up to `record_bytes_max`. Rows that
    name no partition and have no key (or any, with `ignores_keys`) go to the partitions of `spread` in turn,
    a batch to each."""

    finished: list[tuple[int, bytearray, int, int, int]]

    def __init__(
        self,
        partitions: int,
        batch_bytes: int,
        record_bytes_max: int,
        spread: list[int],
        ignores_keys: bool = False,
    ) -> None: ...
    def load(
        self,
        values: BytesInput,
        keys: BytesInput | None,
        headers: tuple[int, Any, BytesInput, BytesInput] | None,
        numbers: Any,
        timestamps: Any,
    ) -> None:
        """The columns that encode() reads. `headers` are a first place, the rows' end offsets, names and
        values; `numbers` partitions of 32 bits, below 0 where the row names none; `timestamps` ms, or one for
        all rows."""
    def encode(self, row: int, end: int, bytes_max: int) -> int:
        """Encode rows until `end`, or until so many bytes were finished; gives the row to go on at.

        ValueError where a column is shorter than it says or names no partition there is; OverflowError where
        a row is larger than record_bytes_max. The rows before it are encoded then."""
    def finish(self) -> None: ...
