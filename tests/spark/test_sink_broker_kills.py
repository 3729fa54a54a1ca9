"""The broker is killed (SIGKILL) at every step of a commit, and at random moments: each row is there once."""

import random
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.spark.topics import Topics
from tests.spark.writing import Query, committed_values, numbers

from barnabas.client.errors import KafkaError
from barnabas.spark.sink.publishing import Publisher
from barnabas.testing import Broker

POINTS = [(step, False) for step in ("fence", "marker", "produce", "mark", "end")] + [("end", True)]
ATTEMPTS_MAX = 30
BATCH_ROWS = 200


@pytest.fixture(scope="module")
def fragile() -> Iterator[Broker]:
    with Broker({"num.partitions": "2"}, subprocess=True) as broker:
        yield broker


@pytest.fixture
def target(fragile: Broker) -> str:
    with Topics(fragile.bootstrap) as topics:
        return topics.make(f"t-{uuid.uuid4().hex[:12]}")


def options_of(broker: Broker, topic: str, **more: str) -> dict[str, str]:
    settings = {f"kafka.{name.replace('_', '.')}": text for name, text in more.items()}
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "topic": topic,
        "delivery": "exactly-once",
        "transactional.id": f"id of {topic}",
        **settings,
    }


def seen(broker: Broker, topic: str) -> list[int]:
    with Topics(broker.bootstrap) as topics:
        return committed_values(topics, topic)


@pytest.mark.parametrize(("step", "after"), POINTS)
def test_a_broker_that_is_killed_between_two_steps(
    step: str, after: bool, fragile: Broker, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back at once, and the commit goes on."""
    query = Query(options_of(fragile, target))
    query.run(0, [numbers(0, 10)])
    real = getattr(Publisher, step)

    def with_kill(self: Publisher, *arguments: Any) -> Any:
        monkeypatch.undo()
        result = real(self, *arguments) if after else None
        fragile.kill()
        fragile.restart()
        return result if after else real(self, *arguments)

    messages = query.write([numbers(10, 30)], batch=1)
    monkeypatch.setattr(Publisher, step, with_kill)
    query.commit(messages, 1)
    query.run(1, [numbers(10, 30)])
    query.run(2, [numbers(30, 35)])
    assert seen(fragile, target) == list(range(35))


@pytest.mark.parametrize("step", ["produce", "end"])
def test_a_broker_that_stays_away_fails_the_batch_and_it_is_written_later(
    step: str, fragile: Broker, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = {"request_timeout_ms": "1000", "delivery_timeout_ms": "1200", "max_block_ms": "1200"}
    query = Query(options_of(fragile, target, **impatient))
    messages = query.write([numbers(0, 20)], batch=0)
    real = getattr(Publisher, step)

    def without_broker(self: Publisher, *arguments: Any) -> None:
        monkeypatch.undo()
        fragile.kill()
        real(self, *arguments)

    monkeypatch.setattr(Publisher, step, without_broker)
    with pytest.raises(KafkaError):
        query.commit(messages, 0)
    query.writer().abort(messages, 0)
    fragile.restart()
    patient = Query(options_of(fragile, target))
    patient.run(0, [numbers(0, 20)])
    assert seen(fragile, target) == list(range(20))


def commit_until_it_holds(query: Query, batch: int, tasks: list[Any]) -> None:
    """As Spark and its user do: after a failure, start again from the checkpoint."""
    for _ in range(ATTEMPTS_MAX):
        try:
            query.run(batch, *tasks)
            return
        except KafkaError:
            continue
    raise AssertionError(f"batch {batch} is not written after {ATTEMPTS_MAX} attempts")


def survive(broker: Broker, topic: str, kills: int) -> None:
    """Run batches while the broker is killed at random moments."""
    choose = random.Random()
    query = Query(options_of(broker, topic))
    done = threading.Event()

    def kill_and_restart() -> None:
        try:
            for _ in range(kills):
                time.sleep(choose.uniform(0.0, 0.4))
                broker.kill()
                time.sleep(choose.choice((0.0, 0.3)))
                broker.restart()
        finally:
            done.set()

    killer = threading.Thread(target=kill_and_restart)
    killer.start()
    batch = 0
    try:
        while not done.is_set():
            first = batch * BATCH_ROWS
            middle = first + choose.randrange(BATCH_ROWS)
            tasks = [[numbers(first, middle)], [numbers(middle, first + BATCH_ROWS)]]
            commit_until_it_holds(query, batch, tasks)
            batch += 1
    finally:
        killer.join()
    query.run(batch, [numbers(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)])
    assert seen(broker, topic) == list(range((batch + 1) * BATCH_ROWS))


def test_a_broker_that_is_killed_at_random_moments(fragile: Broker, target: str) -> None:
    survive(fragile, target, kills=4)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_broker_that_is_killed_again_and_again(fragile: Broker, target: str) -> None:
    survive(fragile, target, kills=40)
