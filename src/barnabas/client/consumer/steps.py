"""The steps of a rebalance, independent of how the caller waits.

A rebalance calls the user's listener and sends requests to the coordinator. It is a generator: it yields a
step, the caller performs the step and sends the result back in. The consumer performs steps by blocking its
thread, its asyncio form by awaiting, so the rebalance is written only once."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, NamedTuple, TypeVar

from barnabas.client.runtime import IoThread
from barnabas.client.types import TopicPartition

_T = TypeVar("_T")


class Wait(NamedTuple):
    """Wait until `is_done` or the deadline; the result is whether it is done."""

    is_done: Callable[[], object]
    deadline: float


class RunOnIoThread(NamedTuple):
    """Run a coroutine on the I/O thread; the result is the result of the coroutine."""

    start: Callable[[], Coroutine[Any, Any, Any]]
    timeout: float


class CallListener(NamedTuple):
    """Call a method of the user's listener."""

    method: Callable[[list[TopicPartition]], Any]
    partitions: list[TopicPartition]


Step = Wait | RunOnIoThread | CallListener
Steps = Generator[Step, Any, _T]


class BlockingSteps:
    """Performs steps on the calling thread."""

    def __init__(self, io: IoThread, wait: Callable[[Callable[[], object], float], bool]) -> None:
        self._io = io
        self._wait = wait

    def perform(self, steps: Steps[_T]) -> _T:
        resume: Callable[[Any], Step] = steps.send
        given: Any = None
        while True:
            try:
                step = resume(given)
            except StopIteration as end:
                result: _T = end.value
                return result
            try:
                resume, given = steps.send, self._perform_one(step)
            except BaseException as error:
                resume, given = steps.throw, error

    def _perform_one(self, step: Step) -> Any:
        if isinstance(step, Wait):
            return self._wait(step.is_done, step.deadline)
        if isinstance(step, RunOnIoThread):
            return self._io.call(step.start(), step.timeout)
        return step.method(step.partitions)
