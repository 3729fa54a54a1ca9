"""Whether the metadata of a broker were the newest ones at some moment."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.broker.newest_metadata import NewestMetadata
from barnabas.clock import FakeClock
from barnabas.metadata.store import StoreUnavailable


class Node:
    """A metadata node whose store answers when the test says so."""

    def __init__(self) -> None:
        self.questions: list[asyncio.Future[None]] = []

    async def catch_up(self) -> None:
        self.questions.append(asyncio.get_running_loop().create_future())
        await self.questions[-1]


def tell(story: Callable[[NewestMetadata, Node, FakeClock], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        node, clock = Node(), FakeClock()
        newest = NewestMetadata(node, clock)  # type: ignore[arg-type]
        await story(newest, node, clock)
        await newest.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


async def let_run() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_an_answer_holds_for_the_time_of_its_question() -> None:
    async def story(newest: NewestMetadata, node: Node, clock: FakeClock) -> None:
        assert not newest.is_newest_since(clock.monotonic())
        await let_run()
        clock.advance(1000)
        assert not newest.is_newest_since(clock.monotonic())
        await let_run()
        assert len(node.questions) == 1, "one question at a time"
        node.questions[0].set_result(None)
        await let_run()
        assert newest.is_newest_since(0.0)
        # While the answer was under way, or the broker paused, the metadata may have changed.
        assert not newest.is_newest_since(clock.monotonic())
        await let_run()
        node.questions[1].set_result(None)
        await let_run()
        assert newest.is_newest_since(clock.monotonic())
        assert len(node.questions) == 2

    tell(story)


def test_a_store_that_is_away_is_asked_again() -> None:
    async def story(newest: NewestMetadata, node: Node, clock: FakeClock) -> None:
        assert not newest.is_newest_since(0.0)
        await let_run()
        node.questions[0].set_exception(StoreUnavailable("away"))
        await let_run()
        assert not newest.is_newest_since(0.0)
        await let_run()
        node.questions[1].set_result(None)
        await let_run()
        assert newest.is_newest_since(0.0)

    tell(story)


def test_closing_ends_a_question() -> None:
    async def story(newest: NewestMetadata, node: Node, clock: FakeClock) -> None:
        newest.is_newest_since(0.0)
        await let_run()

    tell(story)
