"""The queue of handshakes: however many there are, other work gets its turn."""

import asyncio
import itertools
from collections.abc import Callable

import pytest

from barnabas.net import handshakes
from barnabas.net.handshakes import Handshakes


def run(work: Callable[[Handshakes, asyncio.AbstractEventLoop], None], turns: int) -> None:
    """Call `work` and then let the loop make so many turns."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        work(Handshakes(loop), loop)
        for _ in range(turns):
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_turn_goes_on_with_few_of_many_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(handshakes, "monotonic", lambda: now)
    done: list[int] = []
    between: list[int] = []

    def step(number: int) -> None:
        nonlocal now
        now += 0.001
        done.append(number)

    def work(queue: Handshakes, loop: asyncio.AbstractEventLoop) -> None:
        def look() -> None:
            between.append(len(done))
            if len(done) < 100:
                loop.call_soon(look)

        loop.call_soon(look)
        for number in range(100):
            queue.wait(lambda number=number: step(number))

    run(work, 200)
    assert done == list(range(100))
    # Other work of the loop is never further than a few handshakes away.
    assert max(after - before for before, after in itertools.pairwise(between)) <= 4


def test_a_handshake_that_waits_again_comes_after_the_others() -> None:
    done: list[str] = []

    def work(queue: Handshakes, loop: asyncio.AbstractEventLoop) -> None:
        def first() -> None:
            done.append("first")
            queue.wait(lambda: done.append("first again"))

        queue.wait(first)
        queue.wait(lambda: done.append("second"))

    run(work, 5)
    assert done == ["first", "second", "first again"]


def test_a_defect_in_one_does_not_stop_the_others() -> None:
    done: list[str] = []

    def broken() -> None:
        raise RuntimeError("a defect")

    def work(queue: Handshakes, loop: asyncio.AbstractEventLoop) -> None:
        loop.set_exception_handler(lambda loop, context: done.append(str(context["exception"])))
        queue.wait(broken)
        queue.wait(lambda: done.append("second"))

    run(work, 5)
    assert done == ["a defect", "second"]
