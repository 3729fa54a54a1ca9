from typing import Any

class BytesInput:
    def __init__(self, first: int, bits: Any, ends: Any, data: Any) -> None: ...

def largest_row(values: BytesInput, keys: BytesInput | None, rows: int) -> int: ...

class EncodedBatch:
    """A finished batch: `data` has room for a header, then the records."""

    @property
    def partition(self) -> int: ...
    @property
    def data(self) -> bytearray: ...
    @property
    def count(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...

class TableEncoder:
    """Batches that grow by rows, one for each partition. Batches that are full, or ended by finish(), are in
    `finished`; the caller takes them from there.

    A batch has up to `batch_bytes`; a larger record gets a batch of its own, up to `record_bytes_max`. Rows
    that name no partition and have no key (or any key, with `ignores_keys`) go to the partitions of `spread`
    in turn, one batch to each."""

    finished: list[EncodedBatch]

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
        header_names: BytesInput | None,
        header_values: BytesInput | None,
        header_ends: Any,
        numbers: Any,
        timestamps: Any,
    ) -> None:
        """Set the columns that encode() reads. The headers of row `i` are those from header_ends[i] to
        header_ends[i + 1]. `numbers` are partitions of 32 bits, negative if the row names none. `timestamps`
        are milliseconds, or one number for all rows."""
    def encode(self, row: int, end: int, bytes_max: int) -> int:
        """Encode rows until `end`, or until so many bytes are finished; returns the row to continue at.

        Raises ValueError if a column is too short or names a partition that does not exist, OverflowError if
        a row is larger than record_bytes_max. The rows before it are encoded then."""
    def finish(self) -> None: ...
