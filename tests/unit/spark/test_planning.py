"""How much a batch reads, and how its ranges become tasks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.ids import TopicPartition
from barnabas.spark.planning import Range, capped, capped_by_bytes, packed, split

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
RANGES = st.lists(
    st.builds(
        lambda number, start, size: Range(TopicPartition("t", number), start, start + size),
        st.integers(0, 30),
        st.integers(0, 10**6),
        st.integers(0, 2000),
    ),
    max_size=8,
    unique_by=lambda each: each.partition,
)


def test_a_cap_is_shared_by_what_there_is_to_read() -> None:
    assert capped({A: 0, B: 100}, {A: 900, B: 200}, 100) == {A: 90, B: 110}
    assert capped({A: 0, B: 100}, {A: 900, B: 200}, 1000) == {A: 900, B: 200}


def test_a_small_partition_moves_on_beside_a_large_one() -> None:
    assert capped({A: 0, B: 0}, {A: 10**6, B: 1}, 100)[B] == 1


def test_a_partition_that_is_shorter_than_before_stays_as_it_is() -> None:
    assert capped({A: 50, B: 0}, {A: 10, B: 100}, 20) == {A: 10, B: 20}


def test_bytes_are_shared_by_bytes() -> None:
    # 100 records of 10 bytes and 100 of 30: a quarter and three quarters of the bytes.
    assert capped_by_bytes({A: 0, B: 0}, {A: 100, B: 100}, {A: 10.0, B: 30.0}, 400) == {A: 10, B: 10}
    assert capped_by_bytes({A: 0, B: 0}, {A: 100, B: 100}, {A: 10.0, B: 30.0}, 4000) == {A: 100, B: 100}


def test_one_record_larger_than_the_cap_is_read_all_the_same() -> None:
    assert capped_by_bytes({A: 0}, {A: 9}, {A: 5000.0}, 100) == {A: 1}


def test_ranges_are_split_into_equal_parts() -> None:
    whole = Range(A, 0, 10)
    assert split([whole], 4, None) == [Range(A, 0, 3), Range(A, 3, 6), Range(A, 6, 10)]
    assert split([whole], None, 2) == [Range(A, 0, 5), Range(A, 5, 10)]
    assert split([Range(A, 5, 5), whole], None, None) == [whole]


def test_large_ranges_are_split_and_small_ones_stay_whole() -> None:
    pieces = split([Range(A, 0, 10), Range(B, 0, 1000)], None, 4)
    assert pieces[0] == Range(A, 0, 10)
    assert len(pieces) == 4


@settings(deadline=None)
@given(RANGES, st.none() | st.integers(1, 3000), st.none() | st.integers(1, 40))
def test_splitting_loses_and_repeats_nothing(
    ranges: list[Range], records_max: int | None, partitions_min: int | None
) -> None:
    pieces = split(ranges, records_max, partitions_min)
    for whole in ranges:
        parts = [each for each in pieces if each.partition == whole.partition]
        assert sum(each.size for each in parts) == whole.size
        edges = [whole.start, *(each.end for each in parts)]
        assert [each.start for each in parts] == edges[:-1]
    assert all(each.size > 0 for each in pieces)
    if records_max is not None:
        assert all(each.size <= records_max for each in pieces)


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1),
    st.integers(1, 10**9),
)
def test_a_cap_is_kept_and_all_move_on(sizes: dict[int, tuple[int, int]], most: int) -> None:
    begin = {TopicPartition("t", number): start for number, (start, _) in sizes.items()}
    end = {TopicPartition("t", number): start + size for number, (start, size) in sizes.items()}
    ends = capped(begin, end, most)
    assert sum(ends[each] - begin[each] for each in end) <= max(most, len(end)) + len(end)
    assert all(begin[each] <= ends[each] <= end[each] for each in end)
    assert all(ends[each] > begin[each] for each in end if end[each] > begin[each])


def test_a_task_reads_several_ranges_if_there_are_more_than_tasks() -> None:
    parts = [Range(TopicPartition("t", number), 0, size) for number, size in enumerate((10, 90, 50, 40))]
    assert packed(parts, 4) == [[each] for each in parts]
    assert packed(parts, None) == [[each] for each in parts]
    tasks = packed(parts, 2)
    assert sorted(tasks) == [[parts[0], parts[1]], [parts[2], parts[3]]]


@settings(deadline=None)
@given(RANGES, st.none() | st.integers(1, 3000), st.integers(1, 10))
def test_packing_loses_and_repeats_nothing_and_keeps_the_order(
    ranges: list[Range], records_max: int | None, tasks_max: int
) -> None:
    parts = split(ranges, records_max, None)
    tasks = packed(parts, tasks_max)
    assert len(tasks) <= tasks_max
    assert all(task == sorted(task) and task for task in tasks)
    assert sorted(each for task in tasks for each in task) == sorted(parts)
    # No task has more than the others by more than one range.
    sizes = [sum(each.size for each in task) for task in tasks]
    if parts:
        assert max(sizes) - min(sizes) <= max(each.size for each in parts) or len(parts) <= tasks_max
