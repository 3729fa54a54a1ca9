"""Calls to the shards of a coordinator. The reply comes at once, or when the step is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from barnabas.broker.later import Later
from barnabas.broker.turns import Work, run_in_turns
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import Machine, Step
from barnabas.errors import ErrorCode, KafkaError

M = TypeVar("M", bound=Machine)


class ShardReply(Later):
    """A reply that may come later. `refuse` turns an error code into a reply."""

    __slots__ = ("_refuse",)

    def __init__(self, refuse: Callable[[ErrorCode], Any]) -> None:
        super().__init__()
        self._refuse = refuse

    def resolve(self, answer: Any) -> None:
        super().resolve(self._refuse(answer.code) if isinstance(answer, KafkaError) else answer)


def call_shard(
    find: Callable[[], Shard[M]],
    decide: Callable[[M, ShardReply, int], Step[Any]],
    refuse: Callable[[ErrorCode], Any],
) -> ShardReply:
    """Run one step on a shard. `decide` also gets the ShardReply, to answer it later if the call is
    parked."""
    reply = ShardReply(refuse)
    try:
        find().run(lambda machine, now_ms: decide(machine, reply, now_ms), reply)
    except KafkaError as error:
        reply.resolve(error)
    return reply


class ShardCall(NamedTuple):
    find: Callable[[], Any]
    decide: Callable[[Any, ShardReply, int], Step[Any]]
    refuse: Callable[[ErrorCode], Any]


def call_shards(calls: Iterable[ShardCall | None], combine: Callable[[list[Any]], Work[Any]]) -> Work[Any]:
    """Make several calls in turns, and combine their replies, which are in the order of the calls.

    A None among the calls is a place to pause."""
    answers: list[Any] = []
    waiting: dict[int, ShardReply] = {}
    for call in calls:
        if call is not None:
            place = len(answers)
            answers.append(waiting)
            reply = call_shard(*call)
            reply.then(partial(answers.__setitem__, place))
            if answers[place] is waiting:
                waiting[place] = reply
        yield
    if not waiting:
        return (yield from combine(answers))
    return _wait(answers, waiting, combine)


def at_once(combine: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Work[Any]]:
    """For replies that can be combined in one turn, however many they are."""

    def work(answers: list[Any]) -> Work[Any]:
        yield
        return combine(answers)

    return work


async def _wait(
    answers: list[Any], waiting: dict[int, ShardReply], combine: Callable[[list[Any]], Work[Any]]
) -> Any:
    """Wait for the replies that are missing because replicas are behind."""
    arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    missing = set(waiting)

    def take(place: int, answer: Any) -> None:
        answers[place] = answer
        missing.discard(place)
        if not missing and not arrived.done():
            arrived.set_result(None)

    for place, reply in waiting.items():
        # A reply that came since the call was made is already in its place.
        if answers[place] is waiting:
            reply.then(partial(take, place))
        else:
            missing.discard(place)
    if missing:
        await arrived
    return await run_in_turns(combine(answers))
