"""All brokers are killed at once (kill -9) and started again: every acknowledged record is there, and so are
the offsets of groups and the transactions that were open."""

import time
from random import Random

import pytest
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import All, Killed
from tests.jepsen.stage import Stage

import barnabas
from barnabas.ids import TopicPartition

pytestmark = pytest.mark.faults

KILLS = 2
TIMEOUT_MS = 120_000
IDLE_OFFSET = 7


def test_all_brokers_are_killed_at_once(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with run() as stage:
        chance = Random(stage.seed)
        commit_offset(stage, topic)
        with open_transaction(stage, topic) as writer:
            before = described(stage)
            for _ in range(KILLS):
                stage.run(chance.uniform(0.3, 2.0))
                committed = committed_offsets(stage)
                with stage.fault(Killed(stage.system, All())):
                    pass
                back_at = time.monotonic()
                check_committed(stage, committed)
                recovered(stage, "offsets of groups", back_at)
            assert described(stage) == before
            assert committed_offset(stage, topic) == IDLE_OFFSET
            writer.commit_transaction()
            recovered(stage, "the open transaction", back_at)
        assert read(stage, topic) == [b"before all were killed"]
        # All clients of the load, which have groups and transactions, go on.
        stage.wait_for_progress(1)
        recovered(stage, "all clients", back_at)


def recovered(stage: Stage, what: str, since: float) -> None:
    stage.record_recovery(what, time.monotonic() - since, stage.recovery_seconds_max)


# ---- a group without members, and the groups of the load


def commit_offset(stage: Stage, topic: str) -> None:
    with stage.system.admin() as admin:
        offsets = {TopicPartition(topic, 0): barnabas.OffsetAndMetadata(IDLE_OFFSET)}
        admin.alter_consumer_group_offsets(f"{stage.name}-idle", offsets)


def committed_offset(stage: Stage, topic: str) -> int | None:
    with stage.system.admin() as admin:
        found = admin.list_consumer_group_offsets(f"{stage.name}-idle").get(TopicPartition(topic, 0))
    return None if found is None else found.offset


def committed_offsets(stage: Stage) -> dict[tuple[str, TopicPartition], int]:
    with stage.system.admin() as admin:
        return {
            (group.id, partition): found.offset
            for group in stage.load.groups(stage.name)
            for partition, found in admin.list_consumer_group_offsets(group.id).items()
            if found is not None
        }


def check_committed(stage: Stage, before: dict[tuple[str, TopicPartition], int]) -> None:
    after = committed_offsets(stage)
    for key, offset in before.items():
        assert after.get(key, -1) >= offset, f"{key} was {offset} and is {after.get(key)}"


# ---- a transaction that is open all the time


def open_transaction(stage: Stage, topic: str) -> barnabas.Producer:
    writer = barnabas.Producer(
        bootstrap_servers=stage.system.bootstrap,
        transactional_id=f"{stage.name}-open",
        transaction_timeout_ms=TIMEOUT_MS,
    )
    writer.init_transactions()
    writer.begin_transaction()
    writer.send(topic, b"before all were killed", partition=0).result(30)
    return writer


def described(stage: Stage) -> tuple[str, int, int, frozenset[TopicPartition]]:
    name = f"{stage.name}-open"
    with stage.system.admin() as admin:
        found = admin.describe_transactions([name])[name]
    return found.state, found.producer_id, found.producer_epoch, frozenset(found.partitions)


def read(stage: Stage, topic: str) -> list[bytes]:
    with barnabas.Consumer(
        bootstrap_servers=stage.system.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as reader:
        reader.assign([TopicPartition(topic, 0)])
        return [record.value or b"" for record in reader.poll(20.0)]
