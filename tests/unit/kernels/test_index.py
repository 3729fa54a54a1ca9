"""The walk over batch headers, compiled and interpreted: the same results for valid and damaged batches."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import index as compiled
from barnabas.records.builder import build_batch

plain = interpreted(compiled)
EPOCH_AT = 12


def _log(sizes: list[int], first: int = 0, epochs: list[int] | None = None) -> bytes:
    """Batches with these numbers of records, one after the other."""
    data, offset = b"", first
    for number, count in enumerate(sizes):
        epoch = epochs[number] if epochs else 0
        batch = build_batch([(0, None, b"v" * offset, [])] * count, base_offset=offset)
        data += batch[:EPOCH_AT] + epoch.to_bytes(4, signed=True) + batch[EPOCH_AT + 4 :]
        offset += count
    return data


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=8)


@given(sizes, st.integers(0, 40), st.integers(0, 200))
def test_the_batch_that_holds_an_offset_is_found(counts: list[int], offset: int, cut: int) -> None:
    data = _log(counts)
    ends = [sum(counts[: number + 1]) for number in range(len(counts))]
    state, position, size, last = compiled.find_batch(data, offset, -1)
    if offset < ends[-1]:
        place = next(number for number, end in enumerate(ends) if offset < end)
        assert (state, position, last) == (compiled.FOUND, len(_log(counts[:place])), ends[place] - 1)
        assert size == len(_log(counts[: place + 1])) - position
    else:
        assert (state, position, size, last) == (compiled.MORE, len(data), 0, ends[-1] - 1)
    assert plain.find_batch(data, offset, -1) == (state, position, size, last)
    short = data[: max(0, len(data) - cut)]
    assert plain.find_batch(short, offset, -1) == compiled.find_batch(short, offset, -1)


@given(sizes, st.data(), st.integers(-1, 40), st.integers(-(2**62), 2**62))
def test_damaged_bytes_give_the_same_answer_in_both_forms(
    counts: list[int], data: st.DataObject, offset: int, floor: int
) -> None:
    damaged = bytearray(_log(counts, first=5))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    answer = compiled.find_batch(bytes(damaged), offset, floor)
    assert answer == plain.find_batch(bytes(damaged), offset, floor)
    followed = compiled.follow_batches(bytes(damaged), floor, -1)
    assert followed == plain.follow_batches(bytes(damaged), floor, -1)
    state, position, size, _ = answer
    assert position >= 0
    assert state != compiled.FOUND or (size >= 61 and position < len(damaged))


def test_offsets_that_do_not_rise_are_corrupt() -> None:
    data = _log([2, 2])
    assert compiled.find_batch(data + data, 100, -1)[:2] == (compiled.CORRUPT, len(data))
    assert compiled.find_batch(data, 0, 0)[0] == compiled.CORRUPT


def test_a_header_that_is_cut_off_needs_more_bytes() -> None:
    assert compiled.find_batch(b"", 0, -1) == (compiled.MORE, 0, 0, -1)
    assert compiled.find_batch(_log([1])[:60], 0, -1) == (compiled.MORE, 0, 0, -1)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-1, 3)), min_size=1, max_size=8))
def test_epochs_that_do_not_rise_are_corrupt(batches: list[tuple[int, int]]) -> None:
    counts, epochs = [list(column) for column in zip(*batches, strict=True)]
    data = _log(counts, epochs=epochs)
    good = next((number for number in range(1, len(epochs)) if epochs[number] < epochs[number - 1]), None)
    answer = compiled.follow_batches(data, -1, -1)
    state = compiled.MORE if good is None else compiled.CORRUPT
    before = slice(0, good)
    assert answer == (state, len(_log(counts[before])), sum(counts[before]) - 1, epochs[before][-1])
    assert answer == plain.follow_batches(data, -1, -1)
    assert compiled.follow_batches(data, -1, epochs[0] + 1)[:2] == (compiled.CORRUPT, 0)
