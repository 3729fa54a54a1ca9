"""What a member of a group does step by step, without saying how it waits.

A rebalance calls the user's listener and asks the coordinator in between. It is a generator: it yields a
step, somebody performs it and sends the result back in. The consumer performs steps by blocking its thread,
its asyncio form by awaiting; the rebalance is written once."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, NamedTuple, TypeVar

from barnabas.client.runtime import IoThread
from barnabas.client.types import TopicPartition

_T = TypeVar("_T")


class Wait(NamedTuple):
    """Until it is done or the time is there; the result says whether it is done."""

    is_done: Callable[[], object]
    deadline: float


class Ask(NamedTuple):
    """Run a coroutine on the I/O thread; the result is its result."""

    question: Callable[[], Coroutine[Any, Any, Any]]
    timeout: float


class Tell(NamedTuple):
    """Call a method of the user's listener."""

    listen: Callable[[list[TopicPartition]], Any]
    partitions: list[TopicPartition]


Step = Wait | Ask | Tell
Steps = Generator[Step, Any, _T]


class BlockingSteps:
    """Performs steps on the thread that asks for it."""

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
                resume, given = steps.send, self._take(step)
            except BaseException as error:
                resume, given = steps.throw, error

    def _take(self, step: Step) -> Any:
        if isinstance(step, Wait):
            return self._wait(step.is_done, step.deadline)
        if isinstance(step, Ask):
            return self._io.call(step.question(), step.timeout)
        return step.listen(step.partitions)
