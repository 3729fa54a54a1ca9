"""What a waiter can count on."""

import asyncio

from barnabas.replication.waiters import Waiters, all_reached


def test_a_waiter_is_woken_by_the_advance_that_reaches_its_offset() -> None:
    waiters, woken = Waiters(), list[str]()
    waiters.when(10, lambda _: woken.append("ten"))
    waiters.advance(9)
    assert woken == []
    waiters.advance(10)
    assert woken == ["ten"]
    waiters.advance(11)
    assert woken == ["ten"]


def test_only_those_whose_offset_is_reached_are_woken() -> None:
    waiters, woken = Waiters(), list[int]()
    for offset in (5, 20, 7):
        waiters.when(offset, lambda _, offset=offset: woken.append(offset))  # type: ignore[misc]
    waiters.advance(7)
    assert woken == [5, 7]
    assert len(waiters) == 1


def test_a_cancelled_waiter_is_never_woken_and_leaves_nothing_behind() -> None:
    waiters, woken = Waiters(), list[int]()
    waiter = waiters.when(5, lambda _: woken.append(5))
    waiter.cancel()
    waiter.cancel()
    assert len(waiters) == 0
    waiters.advance(5)
    assert woken == []


def test_a_callback_may_park_itself_again() -> None:
    waiters, woken = Waiters(), list[int]()

    def again(_: bool) -> None:
        woken.append(len(woken))
        waiters.when(1, again)

    waiters.when(1, again)
    waiters.advance(1)
    assert woken == [0]
    waiters.advance(1)
    assert woken == [0, 1]


def test_ending_a_wait_does_not_report_that_an_offset_is_reached() -> None:
    waiters, outcomes = Waiters(), list[bool]()
    for offset in (1, 10**12):
        waiters.when(offset, outcomes.append)
    waiters.advance(1)
    waiters.end_all()
    assert outcomes == [True, False]
    assert len(waiters) == 0


def test_each_place_has_its_own_outcome() -> None:
    first, second, third = Waiters(), Waiters(), Waiters()

    async def wait() -> list[bool | None]:
        waiting = asyncio.create_task(all_reached([(first, 5), (second, 5), (third, 5)], 0.05))
        await asyncio.sleep(0)
        first.advance(5)
        second.end_all()
        return await waiting

    assert asyncio.run(wait()) == [True, False, None]
    assert len(third) == 0


def test_nothing_to_wait_for_takes_no_time() -> None:
    assert asyncio.run(all_reached([], 3600)) == []
