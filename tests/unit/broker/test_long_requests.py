"""Long requests are admitted one at a time: in order, and nothing is lost when one is cancelled or fails."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from barnabas.broker import long_requests
from barnabas.broker.long_requests import LongRequests


def admitted(places: list[asyncio.Future[None]]) -> list[bool]:
    return [place.done() and not place.cancelled() for place in places]


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is as it was after each test."""
    yield
    assert gc.isenabled()


def test_requests_are_admitted_one_at_a_time_in_order() -> None:
    async def test() -> None:
        requests = LongRequests()
        places = [requests.enter() for _ in range(3)]
        assert admitted(places) == [True, False, False]
        requests.leave(places[0])
        assert admitted(places) == [True, True, False]
        requests.leave(places[1])
        assert admitted(places) == [True, True, True]
        requests.leave(places[2])
        last = requests.enter()
        assert admitted([last]) == [True]
        requests.leave(last)

    asyncio.run(test())


def test_leaving_twice_admits_one() -> None:
    async def test() -> None:
        requests = LongRequests()
        first, second, third = (requests.enter() for _ in range(3))
        requests.leave(first)
        requests.leave(first)
        assert admitted([second, third]) == [True, False]
        requests.leave(second)
        requests.leave(third)

    asyncio.run(test())


def test_a_request_that_leaves_while_it_waits_is_not_admitted() -> None:
    async def test() -> None:
        requests = LongRequests()
        first, second, third = (requests.enter() for _ in range(3))
        requests.leave(second)
        assert second.cancelled()
        assert admitted([first, third]) == [True, False]
        requests.leave(first)
        assert admitted([third]) == [True]
        requests.leave(third)

    asyncio.run(test())


@pytest.mark.parametrize("is_admitted_first", [False, True])
def test_a_task_that_is_cancelled_lets_the_next_one_in(is_admitted_first: bool) -> None:
    """Also one that was admitted but has not run since."""

    async def test() -> None:
        requests = LongRequests()
        first = requests.enter()

        async def request() -> None:
            place = requests.enter()
            try:
                await place
            finally:
                requests.leave(place)

        task = asyncio.create_task(request())
        await asyncio.sleep(0)
        if is_admitted_first:
            requests.leave(first)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        requests.leave(first)
        last = requests.enter()
        assert admitted([last]) == [True]
        requests.leave(last)

    asyncio.run(test())


def test_a_request_that_takes_very_long_no_longer_keeps_the_next_one_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_requests, "ALONE_SECONDS_MAX", 0.001)

    async def test() -> None:
        requests = LongRequests()
        stuck, second, third = (requests.enter() for _ in range(3))
        await second
        # It is not counted again when it is answered at last.
        requests.leave(stuck)
        assert admitted([third]) == [False]
        requests.leave(second)
        requests.leave(third)

    asyncio.run(test())


def test_the_collector_is_paused_while_a_request_is_answered() -> None:
    async def test() -> None:
        requests = LongRequests()
        first, second = requests.enter(), requests.enter()
        assert not gc.isenabled()
        requests.leave(first)
        assert not gc.isenabled()
        requests.leave(second)
        assert gc.isenabled()

    asyncio.run(test())


def test_a_collector_that_is_off_stays_off() -> None:
    async def test() -> None:
        requests = LongRequests()
        requests.leave(requests.enter())

    gc.disable()
    try:
        asyncio.run(test())
        assert not gc.isenabled()
    finally:
        gc.enable()
