"""Members go: they left, were silent for too long, or were removed. The rest gets a new epoch."""

from collections.abc import Collection

from barnabas.groups.classic.plan import JOIN, SESSION, SYNC, Plan
from barnabas.groups.consumer.changes import Changes
from barnabas.groups.consumer.members import member_tombstones
from barnabas.groups.consumer.migration import DOWNGRADE, is_downgradable
from barnabas.groups.consumer.state import ConsumerState
from barnabas.groups.records import encode
from barnabas.groups.settings import GroupSettings

# The time a member has to give partitions up; see classic_plan for the other timers.
REBALANCE = "rebalance"


class Departures:
    def __init__(self, state: ConsumerState, settings: GroupSettings, changes: Changes) -> None:
        self._state = state
        self._settings = settings
        self._changes = changes

    def fence(self, member_ids: Collection[str], plan: Plan) -> None:
        """Take members out. What they had is free at once: they lost it, whether they know or not."""
        if not member_ids:
            return
        for member_id in member_ids:
            for record in member_tombstones(self._state.group_id, member_id):
                plan.record(encode(record))
            cancel_timers(member_id, plan)
        for record in self._changes.of_departure(member_ids):
            plan.record(encode(record))
        rest = [member for name, member in self._state.members.items() if name not in member_ids]
        if is_downgradable(rest, self._settings):
            plan.after(0, DOWNGRADE)


def cancel_timers(member_id: str, plan: Plan) -> None:
    for kind in (SESSION, REBALANCE, JOIN, SYNC):
        plan.cancel(kind, member_id)
