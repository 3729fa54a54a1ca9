"""Iterating: the position moves with each record, and leaving the loop early loses no records."""

from barnabas.client.consumer import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.iterating import iterate_records
from barnabas.client.consumer.state import Assignments, PartitionState
from barnabas.client.types import TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Scene:
    """A consumer that has polled records 10 to 12 of each partition; its position is 20, after a marker."""

    def __init__(self) -> None:
        self.assignments = Assignments()
        self.assignments.replace([FIRST, SECOND])
        for state in self.assignments.states.values():
            state.move_to(20)
        self.wakes = 0
        self.assignments.wake = self._wake
        by_partition = {
            each: [ConsumerRecord("orders", each.partition, offset) for offset in (10, 11, 12)]
            for each in (FIRST, SECOND)
        }
        self.records = iterate_records(self.assignments, ConsumerRecords(by_partition))

    def _wake(self) -> None:
        self.wakes += 1

    def state(self, partition: TopicPartition) -> PartitionState:
        return self.assignments.states[partition]

    def offsets(self) -> list[int | None]:
        return [self.state(each).offset for each in (FIRST, SECOND)]


def test_the_position_moves_with_each_record_and_ends_where_the_poll_did() -> None:
    scene = Scene()
    at = [(each.partition, each.offset, scene.offsets()) for each in scene.records]
    assert [offsets for partition, _, offsets in at if partition == at[0][0]][-1][at[0][0]] == 13
    assert at[0][2] == ([11, 10] if at[0][0] == 0 else [10, 11])
    assert scene.offsets() == [20, 20]
    assert scene.wakes == 0


def test_after_leaving_the_loop_the_remaining_records_are_read_again() -> None:
    scene = Scene()
    taken = [next(scene.records) for _ in range(2)]
    versions = [scene.state(each).version for each in (FIRST, SECOND)]
    scene.records.close()
    expected = [10, 10]
    expected[taken[0].partition] = 12
    assert scene.offsets() == expected
    assert [scene.state(each).fetch_offset for each in (FIRST, SECOND)] == expected
    assert [scene.state(each).version for each in (FIRST, SECOND)] == [each + 1 for each in versions]
    assert scene.wakes == 1


def test_a_seek_in_the_loop_is_kept() -> None:
    scene = Scene()
    taken = next(scene.records)
    state = scene.state(TopicPartition(taken.topic, taken.partition))
    state.move_to(5)
    next(scene.records)
    assert state.offset == 5
    scene.records.close()
    assert state.offset == 5
