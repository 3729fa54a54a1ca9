"""How a broker hands out producer ids, alone and under many callers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.producer_ids import ProducerIds
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.producer_ids import BLOCK_SIZE
from barnabas.metadata.records import ProducerIdsRecord


def test_without_a_block_there_is_no_id_at_once(stage: Any) -> None:
    assert stage.producer_ids.try_next() is None
    assert stage.run(stage.producer_ids.next()) == 0
    assert stage.producer_ids.try_next() == 1


def test_callers_share_one_allocation(stage: Any) -> None:
    async def many() -> list[int]:
        return await asyncio.gather(*(stage.producer_ids.next() for _ in range(50)))

    assert stage.run(many()) == list(range(50))
    assert stage.image.next_producer_id == BLOCK_SIZE


def test_more_callers_than_a_block_has_ids(stage: Any) -> None:
    async def many() -> list[int]:
        return await asyncio.gather(*(stage.producer_ids.next() for _ in range(BLOCK_SIZE + 5)))

    assert sorted(stage.run(many())) == list(range(BLOCK_SIZE + 5))
    assert stage.image.next_producer_id == 2 * BLOCK_SIZE


def test_blocks_of_two_brokers_do_not_overlap(stage: Any) -> None:
    other = ProducerIds(stage)
    assert stage.run(stage.producer_ids.next()) == 0
    assert stage.run(other.next()) == BLOCK_SIZE


def test_a_caller_that_gives_up_leaves_the_allocation_to_the_others(stage: Any) -> None:
    async def one_gives_up() -> int:
        first = asyncio.ensure_future(stage.producer_ids.next())
        second = asyncio.ensure_future(stage.producer_ids.next())
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert stage.run(one_gives_up()) == 0


def test_a_failure_reaches_every_caller_and_the_next_try_can_succeed(stage: Any) -> None:
    other_start = SimpleNamespace(broker_epoch=stage.node.broker_epoch + 1)
    stale = ProducerIds(
        cast(
            Broker,
            SimpleNamespace(id=stage.id, metadata=other_start, controller_channel=stage.controller_channel),
        )
    )

    async def two() -> list[Any]:
        return await asyncio.gather(stale.next(), stale.next(), return_exceptions=True)

    errors = stage.run(two())
    assert [error.code for error in errors] == [ErrorCode.STALE_BROKER_EPOCH] * 2
    with pytest.raises(KafkaError):
        stage.run(stale.next())
    assert stage.run(stage.producer_ids.next()) == 0


def test_a_restart_begins_a_new_block_and_repeats_no_id(stage: Any) -> None:
    given = [stage.run(stage.producer_ids.next()) for _ in range(3)]
    restarted = ProducerIds(stage)
    assert given == [0, 1, 2]
    assert stage.run(restarted.next()) == BLOCK_SIZE
    assert stage.run(stage.producer_ids.next()) == 3, "the first block goes on where it was"


def test_refill_is_done_when_there_are_ids_and_takes_no_second_block(stage: Any) -> None:
    async def twice() -> None:
        await stage.producer_ids.refill()
        await stage.producer_ids.refill()

    stage.run(twice())
    assert stage.producer_ids.try_next() == 0
    assert stage.image.next_producer_id == BLOCK_SIZE


def test_a_block_is_durable_before_an_id_of_it_is_given(stage: Any) -> None:
    assert stage.run(stage.producer_ids.next()) == 0
    written = [
        record
        for update in stage.run(stage.node._store.read(0))
        for record in update.records
        if isinstance(record, ProducerIdsRecord)
    ]
    assert [record.next_producer_id for record in written] == [BLOCK_SIZE]
