"""A broker's process frees what is garbage in cycles, also what has become old, without waiting for hours."""

import asyncio
import gc
import os
import time
import weakref
from collections.abc import Iterator

import pytest
from tests.bench.usage import own_bytes

from barnabas.cli import garbage


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def old_garbage() -> "weakref.ref[Cycle]":
    """What was in use when the collector last looked, and is garbage now."""
    cycle = Cycle()
    gc.collect()
    return weakref.ref(cycle)


async def rounds() -> None:
    """Some collections, if there are any."""
    collecting = asyncio.create_task(garbage.collect_from_time_to_time())
    for _ in range(20):
        await asyncio.sleep(0.005)
    collecting.cancel()


def work() -> None:
    """What keeps an event loop busy."""
    time.sleep(0.01)


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("is_enabled", [True, False])
def test_old_garbage_is_collected_unless_the_collector_is_disabled(
    monkeypatch: pytest.MonkeyPatch, is_enabled: bool
) -> None:
    garbage.keep_for_good()
    monkeypatch.setattr(garbage, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(garbage, "SHARE_OF_TIME_MAX", 1.0)
    monkeypatch.setattr(garbage, "WAITS_MAX", 0)
    found = old_garbage()
    if not is_enabled:
        gc.disable()
    asyncio.run(rounds())
    assert (found() is None) is is_enabled


@pytest.mark.usefixtures("collector")
def test_a_process_with_many_objects_is_interrupted_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise asyncio.CancelledError

    times = iter([10.0, 10.01, 20.0, 20.1])
    monkeypatch.setattr(garbage, "sleep", sleep)
    monkeypatch.setattr(garbage, "perf_counter", lambda: next(times))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(garbage.collect_from_time_to_time())
    assert pauses == [garbage.PAUSE_SECONDS, garbage.QUIET_SECONDS, pytest.approx(0.1 * 5000)]


@pytest.mark.usefixtures("collector")
def test_a_busy_broker_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is busy for long."""
    monkeypatch.setattr(garbage, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(garbage, "QUIET_SECONDS", 0.001)
    monkeypatch.setattr(garbage, "WAITS_MAX", 5)
    found = old_garbage()

    async def story() -> None:
        collecting = asyncio.create_task(garbage.collect_from_time_to_time())
        for turn in range(20):
            work()
            await asyncio.sleep(0)
            if turn == 2:
                assert found() is not None
        collecting.cancel()

    asyncio.run(story())
    assert found() is None


def test_memory_that_is_not_used_any_more_goes_back_to_the_system() -> None:
    """Blocks of a size that the C library does not map separately; the last one stays, so that it does not
    return the others by itself."""
    blocks = [bytearray(100_000) for _ in range(400)]
    last = bytearray(100_000)
    full = own_bytes(os.getpid())
    blocks.clear()
    garbage.memory_returner()()
    assert own_bytes(os.getpid()) < full - 30_000_000
    assert len(last) == 100_000
