"""A controller dies after any of its writes; the next one brings the cluster to the same state."""

import dataclasses

import pytest

from barnabas.errors import KafkaError
from barnabas.metadata import brokers, settling
from barnabas.metadata.store import StoreUnavailable
from barnabas.metadata.topics import NewTopic

PARTITIONS = 7


@pytest.fixture(autouse=True)
def small_portions(monkeypatch):
    monkeypatch.setattr(brokers, "PARTITIONS_PER_CHANGE", 2)
    monkeypatch.setattr(settling, "PARTITIONS_PER_CHANGE", 2)


def die_after(stage, writes):
    """The store refuses further writes of this controller."""
    append = stage.store.append
    done = []

    async def counted(records, expected_offset, epoch):
        if len(done) == writes:
            raise StoreUnavailable("the process is gone")
        done.append(len(records))
        return await append(records, expected_offset, epoch)

    stage.store.append = counted


def state(stage):
    """Everything but the epochs, which depend on how often a leader changed."""
    partitions = [
        (part.leader, part.isr, part.elr, part.replicas) for part in stage.image.topics["a"].partitions
    ]
    return partitions, {number: broker.fenced for number, broker in stage.image.brokers.items()}


async def prepare(stage):
    await stage.brokers(1, 2, 3)
    replicas = {index: [1, 2, 3] for index in range(PARTITIONS)}
    configs = {"min.insync.replicas": "2"}
    await stage.controller.create_topics([NewTopic("a", assignments=replicas, configs=configs)])


def sessions(stage):
    """Broker 1 is gone, broker 2 comes back from a crash, broker 3 lives."""
    returned = dataclasses.replace(stage.registration(2), previous_epoch=-1)
    return {2: returned, 3: stage.living(3)}


@pytest.mark.parametrize("writes", [*range(12), 100])
def test_a_failover_is_completed_by_the_next_controller(play, writes):
    living = {}

    async def first(stage):
        await prepare(stage)
        living.update(sessions(stage))
        die_after(stage, writes)
        try:
            await stage.controller.reconcile_sessions(living)
        except KafkaError as error:
            assert "the process is gone" in error.message
        del stage.store.append

    async def second(stage):
        await stage.controller.reconcile_sessions(living)
        partitions, fenced = state(stage)
        # Broker 1 was in sync when it went, broker 2 may have lost records.
        assert partitions == [(3, (3,), (1,), (1, 2, 3))] * PARTITIONS
        assert fenced == {1: True, 2: True, 3: False}
        assert stage.image.brokers[2].incarnation == living[2].incarnation
        await stage.beat(2)
        assert stage.image.alive(2)

    play(first)
    play(second)
