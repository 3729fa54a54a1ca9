"""The record set of a Fetch answer: its batches one after the other, opened for reading their records.

A last batch that is cut off is left for the next fetch; control batches are passed over, and with
read_committed so are batches of aborted transactions: the answer names the aborted producers and the offset
from which each is, and a control batch in the log says where its transaction ended. Touches bytes only."""

from collections.abc import Iterable

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import scan_batches
from barnabas.records.batch import ATTRIBUTES_POSITION, HEADER_SIZE, BatchHeader, Buffer, iter_headers
from barnabas.records.builder import ABORT_MARKER, DECOMPRESSED_BYTES_MAX, read_marker
from barnabas.records.compression import decompress


class OpenBatch:
    """A batch whose `left` records lie decompressed in `data`, from `position` to its end."""

    __slots__ = ("append_time", "data", "header", "left", "position")

    def __init__(self, header: BatchHeader, data: Buffer, position: int) -> None:
        self.header = header
        self.data = data
        self.position = position
        self.left = header.count
        # The time of all records, where the broker gave them one.
        self.append_time = header.max_timestamp if header.is_log_append_time else None


class RecordSet:
    """Take records of open_batch() and tell moved() how far, until there is no batch any more.

    `aborted` are (producer id, first offset) of the Fetch answer, and count with `read_committed` only.
    `source` says in errors whose records these are."""

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
        self._headers = iter_headers(self._records)
        self._entry: tuple[int, BatchHeader] | None = None
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
        """Where the next fetch begins: behind the last whole batch."""
        batches = scan_batches(self._records, 0)
        if not batches:
            return self.next_offset
        _, _, base_offset, last_offset_delta, _ = batches[-1]
        return max(self.next_offset, base_offset + last_offset_delta + 1)

    def open_batch(self) -> OpenBatch | None:
        """The batch that still has records left, or the next one to hand out; None at the end.

        CORRUPT_MESSAGE where a batch is damaged; it is met again by the next call."""
        if self._opened is not None and self._opened.left == 0:
            self._opened = None
        while self._opened is None:
            # Kept until it is read: a batch that cannot be read is met again.
            self._entry = self._entry or next(self._headers, None)
            if self._entry is None:
                self.is_done = True
                return None
            self._opened = self._open(*self._entry)
            self._entry = None
        return self._opened

    def moved(self, batch: OpenBatch, position: int, left: int, next_offset: int) -> None:
        """Records of the batch were taken: `left` of them begin at `position`, and reading goes on there."""
        batch.position, batch.left = position, left
        # Where compaction took the last records of a batch, its end is still behind them.
        self.stopped(next_offset if left else batch.header.next_offset)

    def stopped(self, next_offset: int) -> None:
        """Reading came so far and not on: the same batch is handed out again, to fail again."""
        self.next_offset = max(self.next_offset, next_offset)

    def _open(self, position: int, header: BatchHeader) -> OpenBatch | None:
        is_passed = header.next_offset <= self.next_offset
        # A marker counts also where it was passed: a set that is read again must find the same.
        if is_passed and not (header.is_control and self._read_committed):
            return None
        batch = self._records[position : position + header.size]
        if self._check_crcs and crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"The batch of {self.source} at offset {header.base_offset} does not match its checksum.",
            )
        self.leader_epoch = header.leader_epoch
        if header.is_control or self._is_aborted(header):
            self._pass(header, batch)
            return None
        if header.compression:
            payload = decompress(header.compression, batch[HEADER_SIZE:], DECOMPRESSED_BYTES_MAX)
            return OpenBatch(header, payload, 0)
        return OpenBatch(header, batch, HEADER_SIZE)

    def _is_aborted(self, header: BatchHeader) -> bool:
        if not (self._read_committed and header.is_transactional):
            return False
        self._note_aborted(header)
        return header.producer_id in self._aborted_producers

    def _pass(self, header: BatchHeader, batch: memoryview) -> None:
        """Pass over a batch; the marker that ends an aborted transaction frees its producer."""
        self.next_offset = max(self.next_offset, header.next_offset)
        if header.is_control and self._read_committed:
            self._note_aborted(header)
            marker = read_marker(batch)
            if marker is not None and marker.kind == ABORT_MARKER:
                self._aborted_producers.discard(header.producer_id)

    def _note_aborted(self, header: BatchHeader) -> None:
        while self._aborted and self._aborted[-1][0] <= header.last_offset:
            self._aborted_producers.add(self._aborted.pop()[1])
