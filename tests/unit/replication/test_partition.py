"""How a partition follows the metadata, and who is notified."""

import dataclasses

import pytest
from tests.unit.replication.conftest import ME, OTHER, Held

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import PartitionImage

PLACED = PartitionImage((ME, OTHER), (ME,), ME, 3, 0)


def test_a_leader_begins_its_epoch_at_the_end_of_the_log(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    held.append(partition, 5)
    partition.follow(dataclasses.replace(PLACED, leader_epoch=8))
    assert (partition.is_leader, partition.leader_epoch) == (True, 8)
    assert partition.log.leader_epochs.epoch_at(4) == 3
    held.append(partition)
    assert partition.log.leader_epochs.epoch_at(5) == 8


def test_what_is_in_the_log_is_committed_when_the_other_replicas_leave_the_isr(held: Held) -> None:
    held.create("topic", isr=(ME, OTHER))
    partition = held.partition()
    outcomes: list[bool] = []
    partition.committed.when(2, outcomes.append)
    held.append(partition, 2)
    assert (partition.high_watermark, outcomes) == (0, [])
    partition.follow(PLACED)
    assert (partition.high_watermark, outcomes) == (2, [True])


@pytest.mark.parametrize(
    "change", [{"leader": OTHER, "leader_epoch": 4}, {"leader_epoch": 4}, {"leader": -1}]
)
def test_a_wait_ends_with_the_leader_epoch_it_began_under(held: Held, change: dict[str, int]) -> None:
    """Even if this broker leads again and alone: what comes after may be something else."""
    held.create("topic", isr=(ME, OTHER))
    partition = held.partition()
    held.append(partition, 2)
    outcomes: list[bool] = []
    partition.committed.when(2, outcomes.append)
    partition.appended.when(9, outcomes.append)
    partition.follow(dataclasses.replace(PLACED, **change))
    assert outcomes == [False, False]


def test_a_change_of_the_isr_ends_no_wait(held: Held) -> None:
    held.create("topic", isr=(ME, OTHER))
    partition = held.partition()
    outcomes: list[bool] = []
    partition.committed.when(1, outcomes.append)
    partition.follow(dataclasses.replace(PLACED, isr=(ME, OTHER), partition_epoch=9))
    assert outcomes == []
    held.append(partition)
    partition.follow(dataclasses.replace(PLACED, partition_epoch=10))
    assert outcomes == [True]


def test_every_change_withdraws_the_permits(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    changes = [
        lambda: partition.follow(dataclasses.replace(PLACED, isr=(ME, OTHER))),
        lambda: partition.follow(dataclasses.replace(PLACED, leader_epoch=7)),
        lambda: partition.update_config(dataclasses.replace(partition.log.config, max_message_bytes=9)),
        partition.log.go_offline,
        partition.let_go,
    ]
    for change in changes:
        permit = partition.permit()
        assert permit is partition.permit()
        change()
        assert permit.partition is None


def test_a_permit_says_what_holds_now(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    assert (partition.permit().leader_epoch, partition.permit().commits_at_once) == (3, True)
    partition.follow(dataclasses.replace(PLACED, isr=(ME, OTHER), leader_epoch=5))
    assert (partition.permit().leader_epoch, partition.permit().commits_at_once) == (5, False)
    assert partition.permit().plain_rules is not None
    partition.update_config(dataclasses.replace(partition.log.config, compression_type="zstd"))
    assert (partition.permit().stores_zstd, partition.permit().plain_rules) == (True, None)


def test_a_truncation_lowers_the_high_watermark(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    for _ in range(3):
        held.append(partition)
    assert partition.high_watermark == 3
    partition.log.truncate_to(1)
    assert partition.high_watermark == 1


def test_records_are_deleted_up_to_the_high_watermark(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    held.append(partition, 4)
    assert partition.delete_records_before(2) == 2
    assert partition.delete_records_before(1) == 2
    assert partition.delete_records_before(-1) == 4
    with pytest.raises(KafkaError) as refused:
        partition.delete_records_before(5)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
