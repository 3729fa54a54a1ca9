"""Calls to shards: the reply comes at once, later, or as a refusal; several calls become one reply."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.journal import PartitionJournal
from barnabas.broker.shard_calls import ShardCall, ShardReply, at_once, call_shard, call_shards
from barnabas.broker.turns import in_turns, run_in_turns
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import PARKED, JournalRecord, Producer, Step
from barnabas.errors import ErrorCode, KafkaError

RECORD = JournalRecord(b"key", b"value")


class Machine:
    def apply(self, record: JournalRecord, producer: Producer | None) -> None: ...

    def apply_marker(self, producer: Producer, is_commit: bool) -> None: ...

    def loaded(self, now_ms: int) -> Step[None]:
        return Step(None)

    def lapse(self, key: object, now_ms: int) -> Step[None]:
        return Step(None)


class NoTimers:
    """A scheduler whose timers never run out."""

    def call_later(self, delay: float, callback: Any) -> NoTimers:
        return self

    def cancel(self) -> None: ...


@pytest.fixture
def shard(stage: Any) -> Shard[Machine]:
    stage.create("state")
    shard = Shard(
        Machine(), PartitionJournal(stage.replicas.leader("state", 0), stage.clock), NoTimers(), stage.clock
    )
    for _ in shard.load():
        continue
    return shard


def received(reply: Any) -> list[Any]:
    answers: list[Any] = []
    reply.then(answers.append)
    return answers


def refused(code: ErrorCode) -> str:
    return f"refused: {code.name}"


def test_a_reply_that_is_committed_comes_at_once(shard: Shard[Machine]) -> None:
    reply = call_shard(lambda: shard, lambda machine, waiter, now_ms: Step("done", [RECORD]), refused)
    assert received(reply) == ["done"]


def test_an_error_of_the_decision_becomes_a_refusal(shard: Shard[Machine]) -> None:
    def decide(machine: Machine, waiter: ShardReply, now_ms: int) -> Step[str]:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)

    assert received(call_shard(lambda: shard, decide, refused)) == ["refused: INVALID_GROUP_ID"]


def test_a_shard_that_is_not_here_becomes_a_refusal() -> None:
    def find() -> Shard[Machine]:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    reply = call_shard(find, lambda machine, waiter, now_ms: Step("done"), refused)
    assert received(reply) == ["refused: NOT_COORDINATOR"]


def test_a_parked_call_is_answered_through_its_waiter(shard: Shard[Machine]) -> None:
    waiters: list[ShardReply] = []

    def park(machine: Machine, waiter: ShardReply, now_ms: int) -> Step[Any]:
        waiters.append(waiter)
        return Step(PARKED)

    answers = received(call_shard(lambda: shard, park, refused))
    assert answers == []
    shard.run(lambda machine, now_ms: Step(None, answers=[(waiters[0], "later")]))
    assert answers == ["later"]


def test_a_commit_that_fails_becomes_a_refusal(stage: Any, shard: Shard[Machine]) -> None:
    partition = stage.replicas.leader("state", 0)
    stage.place(partition, isr=(1, 2))
    reply = call_shard(lambda: shard, lambda machine, waiter, now_ms: Step("done", [RECORD]), refused)
    answers = received(reply)
    assert answers == []
    stage.place(partition, isr=(1, 2), leader=2, leader_epoch=partition.leader_epoch + 1)
    assert answers == ["refused: NOT_COORDINATOR"]


def test_several_calls_become_one_reply_in_their_order(stage: Any, shard: Shard[Machine]) -> None:
    waiters: list[ShardReply] = []

    def park(machine: Machine, waiter: ShardReply, now_ms: int) -> Step[Any]:
        waiters.append(waiter)
        return Step(PARKED)

    def find_none() -> Shard[Machine]:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    calls = [
        ShardCall(lambda: shard, park, refused),
        ShardCall(lambda: shard, lambda machine, waiter, now_ms: Step("second"), refused),
        ShardCall(find_none, lambda machine, waiter, now_ms: Step("third"), refused),
    ]

    async def story() -> list[str]:
        whole = asyncio.ensure_future(run_in_turns(call_shards(calls, at_once(list))))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not whole.done(), "the first call has no reply yet"
        waiters[0].resolve("first")
        replies: list[str] = await whole
        return replies

    assert stage.run(story()) == ["first", "second", "refused: NOT_COORDINATOR"]


def test_calls_that_are_all_answered_need_no_task(
    stage: Any, shard: Shard[Machine], long_turns: None
) -> None:
    call = ShardCall(lambda: shard, lambda machine, waiter, now_ms: Step("done"), refused)
    assert in_turns(call_shards([call, call], at_once(list))) == ["done", "done"]
    assert in_turns(call_shards([], at_once(len))) == 0
