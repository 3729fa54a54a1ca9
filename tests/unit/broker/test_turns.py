"""Long work gives the loop back, short work is answered at once."""

import asyncio
from types import CoroutineType
from typing import Any

import pytest

from barnabas.broker import turns
from barnabas.broker.later import Later
from barnabas.broker.turns import SLICE, Work, in_slices, in_turns, run_in_turns


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pause ends a turn."""
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)


def counting(upto: int, seen: list[int]) -> Work[str]:
    for number in range(upto):
        seen.append(number)
        yield None
    return "done"


def test_short_work_is_done_in_the_first_turn(long_turns: None) -> None:
    assert in_turns(counting(3, [])) == "done"


def test_long_work_lets_others_run_between_its_turns(short_turns: None) -> None:
    seen: list[int] = []

    async def run() -> Any:
        answer: Any = in_turns(counting(3, seen))
        assert isinstance(answer, CoroutineType)
        assert seen == [0]
        task = asyncio.create_task(answer)
        others = []
        while not task.done():
            await asyncio.sleep(0)
            others.append(len(seen))
        assert others[:3] == [1, 2, 3]
        return await task

    assert asyncio.run(run()) == "done"


def test_the_result_or_the_error_of_a_thread_comes_back_to_the_work() -> None:
    def fails() -> None:
        raise ValueError("from the thread")

    def work() -> Work[list[str]]:
        results = [(yield lambda: "a result")]
        try:
            yield fails
        except ValueError as error:
            results.append(str(error))
        return results

    assert asyncio.run(run_in_turns(work())) == ["a result", "from the thread"]


def test_what_an_awaitable_returns_or_raises_comes_back_to_the_work() -> None:
    async def answers() -> str:
        return "a result"

    async def fails() -> None:
        raise ValueError("from the coroutine")

    def work() -> Work[list[str]]:
        results = [(yield answers())]
        try:
            yield fails()
        except ValueError as error:
            results.append(str(error))
        return results

    assert asyncio.run(run_in_turns(work())) == ["a result", "from the coroutine"]


def test_work_that_is_cancelled_is_closed() -> None:
    closed = []

    def work(reached: asyncio.Event) -> Work[None]:
        try:
            reached.set()
            yield asyncio.get_running_loop().create_future()
        finally:
            closed.append(True)

    async def run() -> None:
        reached = asyncio.Event()
        task = asyncio.create_task(run_in_turns(work(reached)))
        await reached.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed == [True]

    asyncio.run(run())


def test_a_result_that_has_to_be_awaited_is_awaited(short_turns: None) -> None:
    later = Later()

    def work() -> Work[Later]:
        yield None
        return later

    async def run() -> Any:
        asyncio.get_running_loop().call_later(0.001, later.resolve, "later")
        return await run_in_turns(work())

    assert asyncio.run(run()) == "later"


def test_an_error_of_the_work_reaches_its_caller(short_turns: None) -> None:
    def work() -> Work[None]:
        yield None
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        asyncio.run(run_in_turns(work()))


@pytest.mark.parametrize("count", [0, 1, SLICE, SLICE + 1, 3 * SLICE])
def test_slices_cover_all_elements_once(count: int) -> None:
    elements, seen = list(range(count)), list[int]()
    asyncio.run(run_in_turns(in_slices(lambda start, end: seen.extend(elements[start:end]), count)))
    assert seen == elements
