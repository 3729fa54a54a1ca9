"""Several steps as one: what one group does for another's sake, or many groups at once."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from barnabas.coordination.step import Step, Timer

Reply = TypeVar("Reply")


def merged(reply: Reply, steps: Sequence[Step[Any]]) -> Step[Reply]:
    """Records and answers in order; of what the steps say about a timer, the last word counts."""
    result: Step[Reply] = Step(reply)
    delays: dict[Hashable, int] = {}
    cancelled: dict[Hashable, None] = {}
    for step in steps:
        result.records += step.records
        result.answers += step.answers
        result.producer = result.producer or step.producer
        for key in step.cancelled:
            delays.pop(key, None)
            cancelled[key] = None
        for timer in step.timers:
            cancelled.pop(timer.key, None)
            delays[timer.key] = timer.delay_ms
    result.timers = [Timer(key, delay_ms) for key, delay_ms in delays.items()]
    result.cancelled = list(cancelled)
    return result
