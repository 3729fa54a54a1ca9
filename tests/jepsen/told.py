"""What the clients of a run were told during a part of it. The checker judges whole histories; these are
questions of single tests, which may ask while the run goes on.

Moments are those of time.monotonic()."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from tests.jepsen.availability import NANOSECONDS, OWN_END
from tests.jepsen.checker.actions import Action, Outcome, pair
from tests.jepsen.history import merge
from tests.jepsen.stage import Stage
from tests.jepsen.workload import history_files

from barnabas.ids import TopicPartition


def actions(stage: Stage, since: float, until: float = math.inf) -> Iterator[Action]:
    """Those that began and ended in this time."""
    for action in pair(merge(history_files(stage.directory))):
        if (
            action.end is not None
            and action.begin.time >= since * NANOSECONDS
            and action.end.time <= until * NANOSECONDS
        ):
            yield action


def acknowledged(
    stage: Stage, partitions: Collection[TopicPartition], since: float, until: float = math.inf
) -> list[str]:
    """Records that were sent to these partitions and acknowledged, both in this time."""
    keys = {str(partition) for partition in partitions}
    return [
        f"{value} at offset {offset} of {key}, to process {action.process}"
        for action in actions(stage, since, until)
        for key, value, offset, outcome in action.sends()
        if key in keys and outcome is Outcome.COMMITTED
    ]


def failures(stage: Stage, functions: Collection[str], since: float, until: float = math.inf) -> list[str]:
    """Operations that did not succeed, though their clients wanted them to."""
    return [
        str(action.end)
        for action in actions(stage, since, until)
        if action.function in functions
        and action.end is not None
        and action.end.type != "ok"
        and action.end.error != OWN_END
    ]


def rebalances(stage: Stage, since: float, until: float = math.inf) -> list[str]:
    """Polls during which the assignment of a group member changed."""
    return [
        str(action.end)
        for action in actions(stage, since, until)
        if action.function == "poll" and any(name == "rebalance" for name, *_ in action.value)
    ]


def send_seconds(stage: Stage, since: float, until: float = math.inf) -> list[float]:
    """How long each send took that succeeded, the shortest first."""
    return sorted(
        (action.end.time - action.begin.time) / NANOSECONDS
        for action in actions(stage, since, until)
        if action.function == "send" and action.end is not None and action.end.type == "ok"
    )
