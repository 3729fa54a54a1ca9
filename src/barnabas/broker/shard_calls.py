"""Calls to the shards of a coordinator. The reply comes at once, or when the step is committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from barnabas.broker.later import Later
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


def call_shards(calls: Sequence[ShardCall], combine: Callable[[list[Any]], Any]) -> Later:
    """Call several shards, and combine their replies, which are in the order of the calls."""
    whole = Later()
    answers: list[Any] = [None] * len(calls)
    missing = len(calls)

    def answered(place: int, answer: Any) -> None:
        nonlocal missing
        answers[place] = answer
        missing -= 1
        if not missing:
            whole.resolve(combine(answers))

    if not calls:
        whole.resolve(combine([]))
    for place, call in enumerate(calls):
        call_shard(*call).then(lambda answer, place=place: answered(place, answer))  # type: ignore[misc]
    return whole
