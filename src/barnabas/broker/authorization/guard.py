"""Enforces the table of rights: the handlers of a broker with an authorizer, each behind its rule."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from barnabas.broker.authorization.rules import Finish, Rights, Rule
from barnabas.broker.authorization.table import RIGHTS
from barnabas.broker.turns import Work, run_in_turns

if TYPE_CHECKING:
    from barnabas.broker.call import Api, Call, Handler


def guarded_rows(rows: Mapping[int, Api]) -> dict[int, Api]:
    """The same APIs, whose handlers answer only what the peer has a right to."""
    return {key: row._replace(handler=_guarded(row.handler, RIGHTS[key])) for key, row in rows.items()}


def _guarded(handler: Handler, rule: Rule) -> Handler:
    def guarded(call: Call, request: Any) -> Any:
        if call.session.is_trusted:
            return handler(call, request)
        return _checked(call, request, handler, rule)

    return guarded


def _checked(call: Call, request: Any, handler: Handler, rule: Rule) -> Work[Any]:
    outcome = yield from rule.check(Rights(call), request)
    if outcome.is_refused:
        return outcome.answer
    answer = handler(call, request)
    del request
    if isinstance(answer, GeneratorType):
        answer = yield from answer
    if not outcome.finish:
        return answer
    if isinstance(answer, Awaitable):
        # As a result it is awaited after the turn of this long request.
        return _finish_later(answer, outcome.finish)
    yield from _finish(answer, outcome.finish)
    return answer


async def _finish_later(answer: Awaitable[Any], finish: tuple[Finish, ...]) -> Any:
    response = await answer
    await run_in_turns(_finish(response, finish))
    return response


def _finish(response: Any, finish: tuple[Finish, ...]) -> Work[None]:
    for step in finish:
        yield from step(response)
