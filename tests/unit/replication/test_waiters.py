"""What a waiter can count on."""

from barnabas.replication.waiters import Waiter, Waiters


def test_a_waiter_is_woken_by_the_advance_that_reaches_its_offset() -> None:
    waiters, woken = Waiters(), list[str]()
    waiters.when(10, lambda: woken.append("ten"))
    waiters.advance(9)
    assert woken == []
    waiters.advance(10)
    assert woken == ["ten"]
    waiters.advance(11)
    assert woken == ["ten"]


def test_only_those_whose_offset_is_reached_are_woken() -> None:
    waiters, woken = Waiters(), list[int]()
    for offset in (5, 20, 7):
        waiters.when(offset, lambda offset=offset: woken.append(offset))  # type: ignore[misc]
    waiters.advance(7)
    assert woken == [5, 7]
    assert len(waiters) == 1


def test_a_cancelled_waiter_is_never_woken_and_leaves_nothing_behind() -> None:
    waiters, woken = Waiters(), list[int]()
    waiter = waiters.when(5, lambda: woken.append(5))
    waiter.cancel()
    waiter.cancel()
    assert len(waiters) == 0
    waiters.advance(5)
    assert woken == []


def test_a_callback_may_park_itself_again() -> None:
    waiters, woken = Waiters(), list[int]()

    def again() -> None:
        woken.append(len(woken))
        waiters.when(1, again)

    waiters.when(1, again)
    waiters.advance(1)
    assert woken == [0]
    waiters.advance(1)
    assert woken == [0, 1]


def test_wake_all_reaches_everybody() -> None:
    waiters, woken = Waiters(), list[Waiter]()
    for offset in (1, 10**12):
        waiters.when(offset, lambda: woken.append(None))  # type: ignore[arg-type]
    waiters.wake_all()
    assert len(woken) == 2
    assert len(waiters) == 0
