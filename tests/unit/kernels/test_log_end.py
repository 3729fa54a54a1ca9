"""The end of a log, compiled and interpreted: what an append writes, counts and wakes, and what is left alone
when it fails."""

import errno
import struct
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import log_end as compiled
from barnabas.kernels.batches import CheckedBatch

plain = interpreted(compiled)
KERNELS = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])
INDEX_INTERVAL = 200


def test_the_kernel_under_test_is_the_compiled_one():
    assert str(compiled.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


class Refused(Exception):
    """The error of a log that cannot write."""


def new_index(kernel: Any) -> Any:
    class Index(kernel.IndexEnd):
        def __init__(self) -> None:
            self._keys, self._values, self._written, self.entries_max = array("q"), array("q"), 0, 5
            self.chunks = 0

        def _write_chunk(self) -> None:
            self.chunks += 1
            self._written = len(self._keys)

    return Index()


def new_segment(kernel: Any, base_offset: int = 0) -> Any:
    class Segment(kernel.SegmentEnd):
        def __init__(self) -> None:
            self.active, self.base_offset, self.size = True, base_offset, 0
            self.index, self.time_index = new_index(kernel), new_index(kernel)
            self._fd, self._pwrite, self.written = -1, self.write, bytearray()
            self.next_offset = base_offset
            self.size_limit, self.offset_limit, self.timestamp_limit = 1 << 40, 1 << 40, 1 << 60
            self.max_timestamp = self.max_timestamp_offset = -1
            self.index_interval, self._bytes_since_index = INDEX_INTERVAL, 0
            self.fails_after: int | None = None
            self.roll_timers: list[int] = []

        def write(self, fd: int, data: bytes, position: int) -> int:
            if self.fails_after == 0:
                raise OSError(errno.EIO, "broken")
            size = len(data) if self.fails_after is None else self.fails_after
            self.written[position:] = data[:size]
            return size

        def _open_file(self) -> None:
            self._fd = 3

        def _cut_back(self, position: int) -> None:
            del self.written[position:]

        def _start_roll_timer(self, timestamp: int) -> None:
            self.roll_timers.append(timestamp)

    return Segment()


class Producers:
    """Knows one repeated batch: the one with sequence 99."""

    class Known:
        first_offset, last_offset, timestamp = 1, 2, 33

    def __init__(self) -> None:
        self.unreplicated: dict[int, int] = {1: 2}
        self.forgotten: list[int] = []
        self.recorded: list[tuple[int, int]] = []
        self.refused: list[int] = []

    def check_batch(self, batch: CheckedBatch, from_client: bool) -> Known | None:
        if batch.base_sequence == 98:
            raise Refused
        return self.Known() if batch.base_sequence == 99 and from_client else None

    def record_batch(self, batch: CheckedBatch, first_offset: int) -> None:
        self.recorded.append((batch.producer_id, first_offset))

    def refuse(self, batch: CheckedBatch) -> None:
        self.refused.append(batch.producer_id)

    def forget_replicated(self, offset: int) -> None:
        self.forgotten.append(offset)
        self.unreplicated.clear()


class Epochs:
    def __init__(self) -> None:
        self.latest, self.assigned = -1, list[tuple[int, int]]()

    def assign(self, epoch: int, offset: int) -> None:
        self.latest = epoch
        self.assigned.append((epoch, offset))


class Waiters:
    def __init__(self) -> None:
        self.waiting = {"somebody": None}
        self.offsets: list[int] = []

    def advance(self, offset: int) -> None:
        self.offsets.append(offset)


def new_log(kernel: Any) -> Any:
    class Log(kernel.LogEnd):
        def __init__(self) -> None:
            self.log_start_offset = self.log_end_offset = self.high_watermark = 0
            self.flush_at, self.offline = 1 << 60, False
            self.segments = [new_segment(kernel)]
            self.leader_epochs, self.producers = Epochs(), Producers()
            self.flushes: list[int] = []
            self.markers: list[tuple[str, int]] = []

        def _make_room(self, size: int, first: int, last: int, timestamp: int) -> Any:
            if self.offline:
                raise Refused
            self.segments.append(new_segment(kernel, first))
            return self.segments[-1]

        def storage_error(self, problem: OSError) -> Refused:
            return Refused(problem.errno)

        def flush(self) -> None:
            self.flushes.append(self.log_end_offset)

        def _checked_marker(self, batch: CheckedBatch) -> str:
            return "a marker"

        def record_marker(self, batch: CheckedBatch, marker: str, offset: int, segment: Any) -> None:
            self.markers.append((marker, offset))

    return Log()


def new_partition(kernel: Any, is_alone: bool = True) -> Any:
    partition = kernel.PartitionEnd()
    partition.log = new_log(kernel)
    partition.leader_epoch, partition.is_alone = 4, is_alone
    partition.committed, partition.appended = Waiters(), Waiters()
    partition.bytes_in = partition.records_in = partition.plain_produces = 0
    return partition


def batch_of(count: int = 1, size: int = 70, timestamp: int = 5, **fields: int) -> CheckedBatch:
    data = bytearray(size)
    struct.pack_into(">qii", data, 0, 0, size - 12, -1)
    given = {"attributes": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1} | fields
    return CheckedBatch(memoryview(data), count, count - 1, timestamp, 0, *given.values())


def result_of(result: Any) -> tuple[int, int, int, int, bool]:
    return (
        result.first_offset,
        result.last_offset,
        result.log_append_time,
        result.log_start_offset,
        result.duplicate,
    )


@KERNELS
def test_an_append_is_stamped_written_counted_and_wakes_those_who_wait(kernel: Any) -> None:
    partition = new_partition(kernel)
    assert result_of(partition.append(batch_of(3))) == (0, 2, -1, 0, False)
    assert result_of(partition.append(batch_of(2, size=80))) == (3, 4, -1, 0, False)
    log = partition.log
    assert (log.log_end_offset, log.high_watermark, partition.high_watermark) == (5, 5, 5)
    assert (partition.bytes_in, partition.records_in) == (150, 5)
    assert log.leader_epochs.assigned == [(4, 0)]
    written = log.segments[0].written
    assert struct.unpack_from(">qii", written, 0) == (0, 58, 4)
    assert struct.unpack_from(">qii", written, 70) == (3, 68, 4)
    assert partition.appended.offsets == partition.committed.offsets == [3, 5]
    assert log.producers.forgotten == [3]
    assert log.segments[0].roll_timers == [5]


@KERNELS
def test_with_other_replicas_in_sync_an_append_is_not_committed(kernel: Any) -> None:
    partition = new_partition(kernel, is_alone=False)
    partition.append(batch_of())
    assert (partition.log.log_end_offset, partition.high_watermark) == (1, 0)
    assert (partition.appended.offsets, partition.committed.offsets) == ([1], [])


@KERNELS
def test_the_log_has_the_only_high_watermark(kernel: Any) -> None:
    """A truncation lowers the log's; a partition with one of its own would hand out what is gone."""
    partition = new_partition(kernel)
    partition.append(batch_of(3))
    partition.log.high_watermark = 1
    assert partition.high_watermark == 1
    with pytest.raises(AttributeError):
        partition.high_watermark = 9


@KERNELS
def test_a_repeat_changes_nothing_and_gets_the_first_offsets(kernel: Any) -> None:
    partition = new_partition(kernel)
    repeat = batch_of(producer_id=7, base_sequence=99)
    assert result_of(partition.append(repeat)) == (1, 2, 33, 0, True)
    assert (partition.log.log_end_offset, partition.bytes_in, partition.appended.offsets) == (0, 0, [])
    assert result_of(partition.append(repeat, False)) == (0, 0, -1, 0, False)
    assert partition.log.producers.recorded == [(7, 0)]


@KERNELS
def test_markers_and_log_append_time(kernel: Any) -> None:
    partition = new_partition(kernel)
    marker = batch_of(producer_id=7, attributes=0x30)
    assert result_of(partition.append(marker, False)) == (0, 0, -1, 0, False)
    assert partition.log.markers == [("a marker", 0)]
    assert partition.log.producers.recorded == []
    assert partition.append(batch_of(timestamp=77, attributes=0x08)).log_append_time == 77


@KERNELS
@pytest.mark.parametrize("fails_after", [0, 10])
def test_a_failed_write_leaves_log_and_batch_as_they_were(kernel: Any, fails_after: int) -> None:
    partition = new_partition(kernel)
    partition.append(batch_of())
    segment = partition.log.segments[0]
    segment.fails_after = fails_after
    batch = batch_of(producer_id=7)
    before = bytes(batch.data)
    with pytest.raises(Refused):
        partition.append(batch)
    assert bytes(batch.data) == before
    assert (segment.size, len(segment.written), partition.log.log_end_offset) == (70, 70, 1)
    assert partition.log.producers.recorded == []
    assert partition.log.producers.refused == [7]
    segment.fails_after = None
    assert partition.append(batch).first_offset == 1


@KERNELS
def test_a_batch_that_is_refused_or_finds_the_log_offline_is_as_it_came(kernel: Any) -> None:
    partition = new_partition(kernel)
    out_of_order, good = batch_of(producer_id=7, base_sequence=98), batch_of()
    before = bytes(good.data)
    with pytest.raises(Refused):
        partition.append(out_of_order)
    partition.log.offline = True
    with pytest.raises(Refused):
        partition.append(good)
    assert bytes(good.data) == before
    assert (partition.log.log_end_offset, partition.records_in) == (0, 0)


@KERNELS
def test_the_append_of_the_offset_that_is_due_flushes(kernel: Any) -> None:
    partition = new_partition(kernel)
    partition.log.flush_at = 3
    for count in (2, 1, 1, 1):
        partition.append(batch_of(count))
    assert partition.log.flushes == [4, 5]


@KERNELS
@pytest.mark.parametrize(
    ("limit", "value"), [("size_limit", 100), ("offset_limit", 0), ("timestamp_limit", 4)]
)
def test_a_segment_without_room_is_followed_by_another(kernel: Any, limit: str, value: int) -> None:
    partition = new_partition(kernel)
    partition.append(batch_of(timestamp=1))
    setattr(partition.log.segments[0], limit, value)
    partition.append(batch_of())
    assert [segment.base_offset for segment in partition.log.segments] == [0, 1]


@KERNELS
def test_a_full_index_ends_its_segment(kernel: Any) -> None:
    partition = new_partition(kernel)
    partition.log.segments[0].index.entries_max = 1
    for timestamp in range(5):
        partition.append(batch_of(size=INDEX_INTERVAL + 1, timestamp=timestamp))
    assert len(partition.log.segments) == 2


@KERNELS
def test_an_index_writes_its_entries_in_chunks_and_an_inactive_one_takes_none(kernel: Any) -> None:
    index = new_index(kernel)
    for number in range(kernel.WRITE_CHUNK_ENTRIES + 1):
        assert index.append(number, number) == number + 1
    assert (index.chunks, index.last_key()) == (1, kernel.WRITE_CHUNK_ENTRIES)
    index._keys = None
    assert index.last_key() == -1
    with pytest.raises(RuntimeError, match="not active"):
        index.append(1, 1)


@KERNELS
def test_a_permit_that_is_withdrawn_has_no_partition(kernel: Any) -> None:
    partition = new_partition(kernel)
    permit = kernel.Permit(partition, 4, True, None, False)
    assert permit.partition is partition
    permit.withdraw()
    assert permit.partition is None


def state_of(partition: Any) -> list[Any]:
    log = partition.log
    segments = [
        (
            bytes(segment.written),
            segment.size,
            segment.next_offset,
            segment.max_timestamp,
            segment.max_timestamp_offset,
            list(segment.index._keys),
            list(segment.index._values),
            list(segment.time_index._keys),
        )
        for segment in log.segments
    ]
    return [segments, log.log_end_offset, log.high_watermark, partition.bytes_in, partition.records_in]


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(61, 500), st.integers(-1, 100), st.sampled_from([-1, 7])),
        max_size=30,
    )
)
def test_both_forms_agree_on_any_appends(appends: list[tuple[int, int, int, int]]) -> None:
    partitions = [new_partition(kernel) for kernel in (compiled, plain)]
    for count, size, timestamp, producer_id in appends:
        results = [
            result_of(partition.append(batch_of(count, size, timestamp, producer_id=producer_id)))
            for partition in partitions
        ]
        assert results[0] == results[1]
    assert state_of(partitions[0]) == state_of(partitions[1])
