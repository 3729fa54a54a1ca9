"""Batches of a Fetch answer on a follower, compiled and interpreted: what is accepted, and what fits into a
segment."""

from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted
from tests.unit.records.stamping import stamp

from barnabas.kernels import replica_batches as compiled
from barnabas.records.builder import build_batch

plain = interpreted(compiled)
KERNELS = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])
NO_LIMIT = 2**62


def test_the_kernel_under_test_is_the_compiled_one() -> None:
    assert str(compiled.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


def batch(
    offset: int, count: int = 1, epoch: int = 0, timestamp: int = 5, producer_id: int = -1
) -> bytearray:
    values = [(timestamp, None, b"v" * 20, [])] * count
    data = bytearray(build_batch(values, producer_id=producer_id, producer_epoch=0, base_sequence=0))
    stamp(memoryview(data), 0, offset, epoch)
    return data


def checked(kernel: Any, data: bytes, next_offset: int = 0, epoch: int = -1, limit: int = 100) -> Any:
    return kernel.check_batches(memoryview(data), next_offset, epoch, limit, crc32c)


@KERNELS
def test_batches_with_gaps_epochs_and_producers_are_described(kernel: Any) -> None:
    first, second, third = batch(3, 2), batch(9, epoch=2), batch(10, producer_id=7, epoch=2)
    data = first + second + third
    expected = (compiled.GOOD, len(data), 3, 10, [(0, 3), (2, 9)], [len(first + second)])
    assert checked(kernel, data) == expected


@KERNELS
def test_a_batch_that_is_cut_off_is_left_out(kernel: Any) -> None:
    whole = batch(0)
    for cut in range(1, len(whole)):
        assert checked(kernel, whole + batch(1)[:cut])[:4] == (compiled.GOOD, len(whole), 0, 0)
        assert checked(kernel, whole[:cut])[:4] == (compiled.GOOD, 0, -1, -1)


@KERNELS
def test_each_fault_is_named(kernel: Any) -> None:
    good, size = batch(5, epoch=3), len(batch(5))

    def fault_after_good(data: bytes, limit: int = 100) -> int:
        fault, end, first, last, *_ = checked(kernel, good + data, limit=limit)
        assert (end, first, last) == (size, 5, 5)
        return int(fault)

    changed = batch(6, epoch=3)
    changed[-1] ^= 1
    assert fault_after_good(changed) == compiled.WRONG_CHECKSUM
    assert fault_after_good(batch(5, epoch=3)) == compiled.OFFSET_REPEATED
    assert fault_after_good(batch(6, epoch=2)) == compiled.EPOCH_BACK
    assert fault_after_good(batch(6, epoch=4), limit=3) == compiled.EPOCH_AHEAD
    assert fault_after_good(bytes(61)) == compiled.NOT_A_BATCH
    negative = batch(6, epoch=3)
    negative[8:12] = (-1).to_bytes(4, "big", signed=True)
    assert fault_after_good(negative) == compiled.NOT_A_BATCH
    assert checked(kernel, batch(2), next_offset=3)[0] == compiled.OFFSET_REPEATED
    assert checked(kernel, batch(2, epoch=1), epoch=2)[0] == compiled.EPOCH_BACK


@KERNELS
def test_a_run_ends_where_a_limit_is_reached(kernel: Any) -> None:
    data = b"".join(batch(offset, timestamp=offset) for offset in range(6))
    size = len(batch(0))

    def fitting(start: int = 0, **limits: int) -> Any:
        given = {"size": 0, "bytes": NO_LIMIT, "offset": NO_LIMIT, "time": NO_LIMIT}
        given |= {"interval": NO_LIMIT, "since": 0, "entries": 9} | limits
        return kernel.fitting_run(memoryview(data), start, len(data), *given.values(), -1, 0)

    assert fitting() == (6 * size, 5, 5, 5, 6 * size, [])
    assert fitting(bytes=3 * size + 1)[:2] == (3 * size, 2)
    assert fitting(size=size, bytes=3 * size)[:2] == (2 * size, 1)
    assert fitting(offset=3)[:2] == (4 * size, 3)
    assert fitting(time=1)[:2] == (2 * size, 1)
    # The caller has made room for the first one.
    assert fitting(2 * size, bytes=0, offset=0, time=0)[:2] == (3 * size, 2)
    # An entry is due when more than the interval lies before the batch.
    assert fitting(size=1000, interval=size, since=0)[4:] == (
        2 * size,
        [(2, 1000 + 2 * size, 2, 2), (4, 1000 + 4 * size, 4, 4)],
    )
    assert fitting(interval=size - 1, entries=2)[:2] == (3 * size, 2)


@st.composite
def answers(draw: st.DrawFn) -> bytearray:
    """Batches in order, sometimes with a gap, another epoch or a producer; then damage."""
    data, offset, epoch = bytearray(), draw(st.integers(0, 3)), 0
    for _ in range(draw(st.integers(0, 8))):
        offset += draw(st.sampled_from([0] * 9 + [3, -1]))
        epoch += draw(st.sampled_from([0] * 9 + [1, -1]))
        count = draw(st.integers(1, 4))
        timestamp, producer_id = draw(st.tuples(st.integers(-1, 50), st.sampled_from([-1, -1, 7])))
        data += batch(max(offset, 0), count, max(epoch, -1), timestamp, producer_id)
        offset += count
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    return data[: len(data) - draw(st.sampled_from([0, 0, 1, 70]))] if data else data


@given(answers(), st.integers(0, 3), st.integers(-1, 1), st.integers(0, 2))
def test_both_forms_check_alike(data: bytearray, next_offset: int, epoch: int, limit: int) -> None:
    facts = checked(compiled, data, next_offset, epoch, limit)
    assert facts == checked(plain, data, next_offset, epoch, limit)


@given(
    answers(),
    st.tuples(st.integers(0, 500), st.integers(0, 900), st.integers(0, 20), st.integers(-2, 50)),
    st.tuples(st.sampled_from([1, 200]), st.integers(0, 300), st.integers(0, 5), st.integers(-1, 30)),
)
def test_both_forms_find_the_same_run(
    data: bytearray, limits: tuple[int, int, int, int], marks: tuple[int, int, int, int]
) -> None:
    end = checked(compiled, data)[1]
    if end:
        view = memoryview(data)
        run = compiled.fitting_run(view, 0, end, *limits, *marks, 0)
        assert run == plain.fitting_run(view, 0, end, *limits, *marks, 0)
        assert 0 < run[0] <= end
