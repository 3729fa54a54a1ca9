"""A fetch that waits for few or many partitions: what ends the wait, and that no waiters are left."""

import asyncio
import dataclasses
import gc
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

import pytest
from tests.unit.broker.conftest import Stage

from barnabas.broker import fetch_reading
from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.handlers.fetch import fetch
from barnabas.broker.later import Later
from barnabas.broker.session import Session
from barnabas.broker.turns import in_turns
from barnabas.errors import ErrorCode
from barnabas.replication.partition import RequestCounts
from barnabas.wire.codec import RequestHeader
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

COUNT = 100


class Connection:
    when_abandoned: Callable[[], object] | None = None


@pytest.fixture(params=["few", "many"])
def filled(stage: Stage, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stage:
    if request.param == "many":
        monkeypatch.setattr(fetch_reading, "MANY_PARTITIONS", COUNT - 1)
    stage.unknown_requests = RequestCounts()  # type: ignore[attr-defined]
    stage.fetch_sessions = FetchSessions(stage.clock, 10, 120.0)  # type: ignore[attr-defined]
    stage.create("topic", partitions=COUNT)
    return stage


def waiting(stage: Stage) -> int:
    return sum(len(partition.committed) for partition in stage.replicas.all())


def ask(stage: Stage, wait_ms: int, *meanwhile: Callable[[], object], abandon: bool = False) -> Any:
    return stage.run(_ask(stage, wait_ms, meanwhile, abandon))


async def _ask(stage: Stage, wait_ms: int, meanwhile: Any, abandon: bool) -> Any:
    parts = [
        FetchPartition(partition=index, current_leader_epoch=0, partition_max_bytes=1000)
        for index in range(COUNT)
    ]
    topic = FetchTopic(topic="topic", partitions=parts)
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=100, max_bytes=1 << 20, topics=[topic])
    connection = Connection()
    header = RequestHeader(1, 12, 7, "tests")
    call = Call(stage, connection, Session(stage.config.listeners[0], ""), header)  # type: ignore[arg-type]
    answer: Any = fetch(call, request)
    if isinstance(answer, GeneratorType):
        answer = in_turns(answer)
    assert isinstance(answer, Later) or asyncio.iscoroutine(answer)
    task = asyncio.create_task(_awaited(answer))
    for _ in range(1000):
        await asyncio.sleep(0)
        if waiting(stage) == COUNT:
            break
    else:
        raise AssertionError("the fetch does not wait for all partitions")
    for function in meanwhile:
        function()
        for _ in range(20):
            await asyncio.sleep(0)
    if abandon:
        assert connection.when_abandoned is not None
        abandoned, connection.when_abandoned = connection.when_abandoned, None
        abandoned()
        await asyncio.sleep(0.01)
        task.cancel()
        return None
    response = await task
    # A connection forgets it with the reply.
    connection.when_abandoned = None
    return response


async def _awaited(answer: Any) -> FetchResponse | Encoded:
    return await answer  # type: ignore[no-any-return]


def read(response: Any) -> dict[int, int]:
    """The error code of each partition that has records or an error."""
    return {
        part.partition_index: part.error_code
        for part in response.responses[0].partitions
        if part.records or part.error_code
    }


def test_an_append_ends_the_wait(filled: Stage) -> None:
    response = ask(filled, 60_000, lambda: filled.append("topic", 9))
    assert read(response) == {0: 0}
    assert waiting(filled) == 0


def test_the_wait_goes_on_until_there_are_min_bytes(filled: Stage) -> None:
    """One record has less than min_bytes."""
    seen: list[int] = []
    response = ask(
        filled,
        60_000,
        lambda: filled.append("topic"),
        lambda: seen.append(waiting(filled)),
        lambda: filled.append("topic", 9),
    )
    assert seen == [COUNT]
    assert read(response) == {0: 0}


def test_the_time_ends_the_wait(filled: Stage) -> None:
    assert read(ask(filled, 200)) == {}
    assert waiting(filled) == 0


def test_another_leader_ends_the_wait(filled: Stage) -> None:
    partition = filled.replicas.leader("topic", 7)
    placed = filled.image.topics["topic"].partitions[7]
    elsewhere = dataclasses.replace(placed, leader=2, leader_epoch=1)
    response = ask(filled, 60_000, lambda: partition.follow(elsewhere))
    assert read(response) == {7: ErrorCode.FENCED_LEADER_EPOCH}


def test_a_client_that_goes_away_leaves_nothing_behind(filled: Stage) -> None:
    ask(filled, 60_000, abandon=True)
    assert waiting(filled) == 0


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("filled", ["few"], indirect=True)
@pytest.mark.parametrize("how", ["append", "time", "abandon"])
def test_what_waited_is_freed_without_the_garbage_collector(
    filled: Stage, how: str, no_collector: None
) -> None:
    """A broker has thousands of such waits between two runs of the collector."""
    appends = [lambda: filled.append("topic", 9)] if how == "append" else []
    ask(filled, 200 if how == "time" else 60_000, *appends, abandon=how == "abandon")
    assert [type(each) for each in gc.get_objects() if isinstance(each, fetch_reading.Reading)] == []
