"""Asking the shards of a coordinator: an answer comes at once or once it is committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from barnabas.broker.later import Later
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import Machine, Step
from barnabas.errors import ErrorCode, KafkaError

M = TypeVar("M", bound=Machine)


class ShardReply(Later):
    """A reply to come; a KafkaError in its place becomes a reply through `refuse`."""

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
    """Run one step on a shard. `decide` is given the asker too, for calls that are parked."""
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


def call_shards(questions: Sequence[ShardCall], combine: Callable[[list[Any]], Any]) -> Later:
    """Ask several shards; one answer from all of theirs, in the order of the questions."""
    whole = Later()
    answers: list[Any] = [None] * len(questions)
    missing = len(questions)

    def answered(place: int, answer: Any) -> None:
        nonlocal missing
        answers[place] = answer
        missing -= 1
        if not missing:
            whole.resolve(combine(answers))

    if not questions:
        whole.resolve(combine([]))
    for place, question in enumerate(questions):
        call_shard(*question).then(lambda answer, place=place: answered(place, answer))  # type: ignore[misc]
    return whole
