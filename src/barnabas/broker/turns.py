"""Long work in turns: a request with very many elements gives the loop back every few milliseconds.

The work is a generator. It yields None wherever it can pause, a function that has to run in a thread, or an
awaitable. What the function or the awaitable returns (or raises) comes back from the yield. Work that is done
within its first turn is answered at once, without a task. Work that is cancelled is closed.

The result of the work may be something to await, such as a Later. There is a difference: other long requests
(long_requests.py) wait while this one awaits what it yields, but not while its result is awaited. So what may
need other requests in order to go on (a commit, a rebalance, a fetch without data) is a result. A call of the
controller is yielded: it does not need other requests, and in between the request keeps all its memory.

All work of one event loop shares its turns: however many peers send long requests, one of them runs in each
turn of the loop, so that a short request never waits for more than one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from time import monotonic
from types import CoroutineType, GeneratorType
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

# Others wait about this long for one turn of one request.
TURN_SECONDS = 0.004
# Work on this many elements takes much less than a turn.
SLICE = 64

Result = TypeVar("Result")
Pause: TypeAlias = Callable[[], Any] | Awaitable[Any] | None
# It yields a Pause; said as Any, a bare `yield` will do for None.
Work: TypeAlias = Generator[Any, Any, Result]

_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def in_turns(work: Work[Result]) -> Result | Coroutine[Any, Any, Any]:
    """Run one turn: the result if that was enough, otherwise a coroutine that runs the others."""
    try:
        return _go_on(work, _turn(work))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _turn(work: Work[Any]) -> Pause:
    """Run until the time is over or the work has to wait for something. StopIteration has the result."""
    end = monotonic() + TURN_SECONDS
    while True:
        pause: Pause = next(work)
        if pause is not None or monotonic() > end:
            return pause


async def _go_on(work: Work[Any], pause: Pause) -> Any:
    turns = _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    try:
        while True:
            if pause is None:
                async with turns:
                    await asyncio.sleep(0)
                    pause = _turn(work)
                continue
            try:
                value = await (pause if isinstance(pause, Awaitable) else asyncio.to_thread(pause))
            except Exception as error:
                pause = work.throw(error)
            else:
                pause = work.send(value)
    except StopIteration as done:
        result = done.value
    finally:
        work.close()
    return await result if hasattr(result, "__await__") else result


async def run_in_turns(work: Work[Result]) -> Result:
    """Run all turns, for callers that are in a task already."""
    result: Any = in_turns(work)
    if isinstance(result, CoroutineType):
        result = await result
    return result  # type: ignore[no-any-return]


async def completed(answer: Any) -> Any:
    """What a handler answers in the end, whatever form its answer has."""
    if isinstance(answer, GeneratorType):
        answer = in_turns(answer)
    return await answer if hasattr(answer, "__await__") else answer


def in_slices(function: Callable[[int, int], None], count: int) -> Work[None]:
    """Call the function for slices (from, to) of a long list, with pauses in between."""
    for start in range(0, count, SLICE):
        yield None
        function(start, start + SLICE)
