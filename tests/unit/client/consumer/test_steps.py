"""Steps are performed in order, and an error is raised where the step was yielded."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from barnabas.client.config import consumer_config
from barnabas.client.consumer.membership import Handover, MembershipContext
from barnabas.client.consumer.state import Assignments
from barnabas.client.consumer.steps import BlockingSteps, CallListener, RunOnIoThread, Steps, Wait
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
    results: list[object] = []

    def steps() -> Steps[str]:
        results.append((yield Wait(lambda: True, 0.0)))
        results.append((yield RunOnIoThread(answer, 10.0)))
        try:
            yield RunOnIoThread(refusal, 10.0)
        except LookupError as error:
            results.append(str(error))
        yield CallListener(results.append, [PARTITION])
        return "the end"

    assert BlockingSteps(io, wait).perform(steps()) == "the end"
    assert results == [True, "answer", "refused", [PARTITION]]


def test_an_uncaught_error_reaches_the_caller_after_the_cleanup(io: IoThread) -> None:
    cleanups: list[str] = []

    def steps() -> Steps[None]:
        try:
            yield RunOnIoThread(refusal, 10.0)
        finally:
            cleanups.append("cleaned up")

    with pytest.raises(LookupError, match="refused"):
        BlockingSteps(io, wait).perform(steps())
    assert cleanups == ["cleaned up"]


def test_a_partition_that_moves_to_the_end_is_still_owned(io: IoThread) -> None:
    """Taking records moves a partition to the end of the dict; a heartbeat in between must not miss it."""
    assignments = Assignments()
    assignments.replace([PARTITION, TopicPartition("orders", 1)])
    config = consumer_config(bootstrap_servers="127.0.0.1:9", group_id="g")
    handover = Handover(MembershipContext(config, io, None, assignments))  # type: ignore[arg-type]
    owned: list[list[TopicPartition]] = []
    with assignments.signal:
        state = assignments.states.pop(PARTITION)
        reader = threading.Thread(target=lambda: owned.append(handover.owned))
        reader.start()
        time.sleep(0.05)
        assert owned == []
        assignments.states[PARTITION] = state
    reader.join(30)
    assert owned == [[PARTITION, TopicPartition("orders", 1)]]
