"""The record set of a Fetch response: its batches one after the other, opened for reading their records.

A last batch that is cut off is left for the next fetch. Control batches are skipped, and with read_committed
so are batches of aborted transactions: the response has the aborted producers and the first offset of each
transaction, and a control batch in the log shows where it ended. Works on bytes only."""

from collections.abc import Iterable, Iterator

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import next_batch, scan_batches
from barnabas.kernels.shared import OpenBatch
from barnabas.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
)
from barnabas.records.builder import ABORT_MARKER, DECOMPRESSED_BYTES_MAX, read_marker
from barnabas.records.compression import decompress

__all__ = ["OpenBatch", "RecordSet"]


class RecordSet:
    """Read records of open_batch() and report the progress with moved(), until there is no batch.

    `aborted` has (producer id, first offset) from the Fetch response; it is used with `read_committed` only.
    `source` names the partition in errors."""

    def __init__(
        self,
        records: Buffer,
        first_offset: int,
        aborted: Iterable[tuple[int, int]] = (),
        *,
        read_committed: bool = False,
        check_crcs: bool = True,
        source: str = "the partition",
    ) -> None:
        self._records = memoryview(records)
        self._batches = scan_batches(self._records, 0)
        self._batches_read = 0
        self._opened: OpenBatch | None = None
        self._aborted = sorted(((offset, producer) for producer, offset in aborted), reverse=True)
        self._aborted_producers: set[int] = set()
        self._read_committed = read_committed
        self._check_crcs = check_crcs
        self.source = source
        self.next_offset = first_offset
        self.leader_epoch = -1
        self.is_done = False

    def end_offset(self) -> int:
        """Where the next fetch begins: after the last complete batch."""
        if not self._batches:
            return self.next_offset
        _, _, base_offset, last_offset_delta, _ = self._batches[-1]
        return max(self.next_offset, base_offset + last_offset_delta + 1)

    def open_batch(self) -> OpenBatch | None:
        """The batch that still has records left, or the next one; None at the end.

        Raises CORRUPT_MESSAGE if a batch is damaged; the next call tries it again."""
        opened = self._opened
        if opened is not None and opened.left:
            return opened
        opened = self._opened = None
        while opened is None and self._batches_read < len(self._batches):
            opened = self._open(*self._batches[self._batches_read][:4])
            # Only now: the next call tries a batch that cannot be read again.
            self._batches_read += 1
        if opened is None:
            self._check_end()
            self.is_done = True
        self._opened = opened
        return opened

    def _check_end(self) -> None:
        """After the last complete batch there must be nothing, or the beginning of a batch."""
        position = sum(self._batches[-1][:2]) if self._batches else 0
        if next_batch(self._records, position)[0] < 0:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"The bytes after offset {self.end_offset() - 1} of {self.source} are not a record batch.",
            )

    def moved(self, batch: OpenBatch, position: int, left: int, next_offset: int) -> None:
        """Records of the batch were read: `left` of them remain, from `position` on."""
        batch.position, batch.left = position, left
        # If compaction removed the last records of a batch, its end is after the last one that is left.
        self.stopped(next_offset if left else batch.next_offset)

    def stopped(self, next_offset: int) -> None:
        """Reading failed at this offset: the next call gets the same batch and fails again."""
        self.next_offset = max(self.next_offset, next_offset)

    def batches(self) -> Iterator[memoryview]:
        """The bytes of each batch with records that a reader may see, as they are in the log. Use this or
        open_batch(), not both."""
        for position, size, base_offset, last_offset_delta, _ in self._batches:
            if self._visible(position, size, base_offset, last_offset_delta) is not None:
                self.next_offset = base_offset + last_offset_delta + 1
                yield self._records[position : position + size]
        self._check_end()
        self.is_done = True

    def _visible(
        self, position: int, size: int, base_offset: int, last_offset_delta: int
    ) -> tuple[int, ...] | None:
        """The fields of the header; None if the batch has no records for the reader."""
        is_behind = base_offset + last_offset_delta < self.next_offset
        # Markers before the start count, too: reading a set again must give the same records.
        if is_behind and not self._read_committed:
            return None
        # Not as a BatchHeader, unless it is needed: making one would cost as much as the rest of this method.
        fields = HEADER.unpack_from(self._records, position)
        attributes, count = fields[5], fields[12]
        is_control = attributes & CONTROL_FLAG
        if is_behind and not is_control:
            return None
        end = position + size
        if self._check_crcs and crc32c(self._records[position + ATTRIBUTES_POSITION : end]) != fields[4]:
            raise self._corrupt(base_offset, "does not match its checksum")
        self.leader_epoch = fields[2]
        if is_control or (self._read_committed and self._is_aborted(BatchHeader(*fields))):
            self._skip(BatchHeader(*fields), self._records[position:end])
            return None
        if count < 0:
            raise self._corrupt(base_offset, f"has a record count of {count}")
        return fields

    def _open(self, position: int, size: int, base_offset: int, last_offset_delta: int) -> OpenBatch | None:
        fields = self._visible(position, size, base_offset, last_offset_delta)
        if fields is None:
            return None
        _, _, epoch, _, _, attributes, _, base_timestamp, max_timestamp, _, _, _, count = fields
        data, start, end = self._records, position + HEADER_SIZE, position + size
        if codec := attributes & COMPRESSION_MASK:
            data = memoryview(decompress(codec, self._records[start:end], DECOMPRESSED_BYTES_MAX))
            start, end = 0, len(data)
        append_time = max_timestamp if attributes & LOG_APPEND_TIME_FLAG else None
        next_offset = base_offset + last_offset_delta + 1
        return OpenBatch(
            data, start, end, count, base_offset, base_timestamp, append_time, epoch, next_offset
        )

    def _corrupt(self, base_offset: int, problem: str) -> KafkaError:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"The batch of {self.source} at offset {base_offset} {problem}."
        )

    def _is_aborted(self, header: BatchHeader) -> bool:
        if not header.attributes & TRANSACTIONAL_FLAG:
            return False
        self._note_aborted(header)
        return header.producer_id in self._aborted_producers

    def _skip(self, header: BatchHeader, batch: memoryview) -> None:
        """Skip a batch; after an abort marker, batches of its producer are not skipped any more."""
        self.next_offset = max(self.next_offset, header.next_offset)
        if header.is_control and self._read_committed:
            self._note_aborted(header)
            marker = read_marker(batch)
            if marker is not None and marker.kind == ABORT_MARKER:
                self._aborted_producers.discard(header.producer_id)

    def _note_aborted(self, header: BatchHeader) -> None:
        while self._aborted and self._aborted[-1][0] <= header.last_offset:
            self._aborted_producers.add(self._aborted.pop()[1])
