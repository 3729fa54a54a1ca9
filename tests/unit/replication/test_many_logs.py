"""A change of very many logs takes several turns of the loop, in which clients are served."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.unit.replication.conftest import Held

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.records import RemoveTopicRecord
from barnabas.replication.replicas import LOGS_AT_ONCE

MANY = 5 * LOGS_AT_ONCE


async def nothing() -> str:
    return "done"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_the_loop_has_turns_while_logs_are_opened(held: Held) -> None:
    async def story() -> None:
        opened: list[int] = []
        held.create("topic", MANY)
        while len(list(held.replicas.all())) < MANY:
            opened.append(len(list(held.replicas.all())))
            await asyncio.sleep(0)
        assert opened[0] == LOGS_AT_ONCE
        assert len(opened) > 5

    run(story())


def test_a_partition_that_is_not_open_yet_gets_an_error_that_clients_retry(held: Held) -> None:
    async def story() -> None:
        held.create("topic", MANY)
        with pytest.raises(KafkaError) as refused:
            held.replicas.leader("topic", MANY - 1)
        # Clients retry this error.
        assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await held.replicas.settled_after(nothing()) == "done"
        assert held.replicas.leader("topic", MANY - 1).leader_epoch == 3

    run(story())


def test_a_callback_runs_when_all_partitions_are_there(held: Held) -> None:
    async def story() -> None:
        counts: list[int] = []
        held.replicas.when_settled = lambda: counts.append(len(list(held.replicas.all())))
        held.create("topic", MANY)
        await held.replicas.settled_after(nothing())
        assert counts == [MANY]

    run(story())


def test_a_deleted_topic_is_not_served_while_its_logs_are_deleted(held: Held) -> None:
    async def story() -> None:
        topic_id = held.create("topic", MANY)
        await held.replicas.settled_after(nothing())
        held.apply(RemoveTopicRecord(topic_id))
        assert not list(held.replicas.all())
        assert list(held.logs.logs())
        await held.replicas.settled_after(nothing())
        assert not list(held.logs.logs())

    run(story())


def test_a_topic_that_is_deleted_before_all_its_logs_are_open_leaves_none(held: Held) -> None:
    async def story() -> None:
        held.apply(RemoveTopicRecord(held.create("topic", MANY)))
        await held.replicas.settled_after(nothing())
        assert not list(held.logs.logs())
        assert not list(held.replicas.all())

    run(story())


def test_finish_opens_what_is_left_at_once(held: Held) -> None:
    async def story() -> None:
        held.create("topic", MANY)
        held.replicas.finish()
        assert len(list(held.replicas.all())) == MANY
        await held.replicas.settled_after(nothing())

    run(story())
