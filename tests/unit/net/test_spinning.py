"""The selector that looks before it sleeps: the same events, in time, and no spinning where nothing comes."""

import asyncio
import selectors
import socket
import threading

import pytest

from barnabas.net.spinning import QUICK_SECONDS, SpinningSelector, new_event_loop


@pytest.fixture
def selector():
    with SpinningSelector() as made:
        yield made


def test_ready_events_are_returned_with_and_without_polling(selector: SpinningSelector):
    left, right = socket.socketpair()
    with left, right:
        key = selector.register(left, selectors.EVENT_READ, "data")
        right.send(b"x")
        for last_wait in (0.0, QUICK_SECONDS):
            selector._last_wait = last_wait
            assert selector.select(5) == [(key, selectors.EVENT_READ)]
        assert selector.spins == 1


def test_an_event_that_comes_while_it_polls_or_sleeps_is_returned(selector: SpinningSelector):
    left, right = socket.socketpair()
    with left, right:
        selector.register(left, selectors.EVENT_READ)
        for delay in (0.0, 0.00002, 0.01):
            selector._last_wait = 0.0
            timer = threading.Timer(delay, right.send, (b"x",))
            timer.start()
            assert len(selector.select(None)) == 1
            left.recv(1)
            timer.join()


def test_when_nothing_comes_it_sleeps_until_the_timeout_and_polls_no_more(selector: SpinningSelector):
    selector._last_wait = 0.0
    for _ in range(5):
        assert selector.select(0.001) == []
    assert selector.spins == 1
    assert selector.select(0) == []
    assert selector.spins == 1


def test_a_loop_on_it_runs_timers_and_threads():
    async def story() -> str:
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(lambda: "from a thread")

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(story()) == "from a thread"
