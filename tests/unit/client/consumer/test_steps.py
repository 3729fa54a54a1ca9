"""Steps are performed in order, and what goes wrong in one is raised where it was yielded."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from barnabas.client.config import consumer_config
from barnabas.client.consumer.membership import Handover, Surroundings
from barnabas.client.consumer.state import Assignments
from barnabas.client.consumer.steps import Ask, BlockingSteps, Steps, Tell, Wait
from barnabas.client.runtime import IoThread
from barnabas.client.types import TopicPartition

PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def io() -> Iterator[IoThread]:
    io = IoThread().start()
    yield io
    io.stop()


def wait(is_done: Callable[[], object], deadline: float) -> bool:
    return bool(is_done())


async def answer() -> str:
    return "answer"


async def refusal() -> None:
    raise LookupError("refused")


def test_results_and_errors_reach_the_generator(io: IoThread) -> None:
    told: list[object] = []

    def steps() -> Steps[str]:
        told.append((yield Wait(lambda: True, 0.0)))
        told.append((yield Ask(answer, 10.0)))
        try:
            yield Ask(refusal, 10.0)
        except LookupError as error:
            told.append(str(error))
        yield Tell(told.append, [PARTITION])
        return "the end"

    assert BlockingSteps(io, wait).perform(steps()) == "the end"
    assert told == [True, "answer", "refused", [PARTITION]]


def test_an_error_that_nobody_catches_is_the_callers_and_the_rest_is_cleaned_up(io: IoThread) -> None:
    told: list[str] = []

    def steps() -> Steps[None]:
        try:
            yield Ask(refusal, 10.0)
        finally:
            told.append("cleaned up")

    with pytest.raises(LookupError, match="refused"):
        BlockingSteps(io, wait).perform(steps())
    assert told == ["cleaned up"]


def test_a_partition_whose_turn_is_over_is_still_owned(io: IoThread) -> None:
    """Taking records moves a partition to the end of the dict; a heartbeat in between must not miss it."""
    assignments = Assignments()
    assignments.replace([PARTITION, TopicPartition("orders", 1)])
    config = consumer_config(bootstrap_servers="127.0.0.1:9", group_id="g")
    handover = Handover(Surroundings(config, io, None, assignments))  # type: ignore[arg-type]
    found: list[list[TopicPartition]] = []
    with assignments.signal:
        state = assignments.states.pop(PARTITION)
        asking = threading.Thread(target=lambda: found.append(handover.owned))
        asking.start()
        time.sleep(0.05)
        assert found == []
        assignments.states[PARTITION] = state
    asking.join(30)
    assert found == [[PARTITION, TopicPartition("orders", 1)]]
