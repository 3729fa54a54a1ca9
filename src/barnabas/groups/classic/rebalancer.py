"""Rebalances of a classic group: all members join, the generation number rises, all get an assignment.

While a rebalance runs, its members, generation number and protocol are kept in memory only. They are lost
when the coordinator moves, and the members join again. The end of a rebalance is a record. There are three
places that propose one, and none of them changes the state here before `apply` does: the leader's
assignment (syncing.py), the removal of the last member (`remove_members`, `complete`), and the replacement
of a static member without a rebalance (joining.py)."""

from collections.abc import Set
from dataclasses import dataclass

from barnabas.errors import ErrorCode
from barnabas.groups.classic.answers import join_refused, joined, sync_refused
from barnabas.groups.classic.members import Member, Roster
from barnabas.groups.classic.plan import JOIN, PENDING, SESSION, SYNC, Plan
from barnabas.groups.classic.protocol import topics_of
from barnabas.groups.classic.records import CONSUMER, Generation, group_record, group_value, recorded_member
from barnabas.groups.classic.states import State, moved, route
from barnabas.groups.record_schemas import GroupMetadataValue
from barnabas.groups.settings import GroupSettings
from barnabas.wire.messages.join_group import JoinGroupResponse


@dataclass(slots=True)
class FirstWait:
    """A group that was empty waits for more members. New members extend this, up to the rebalance timeout."""

    delay_ms: int
    remaining_ms: int
    has_newcomer: bool = False


class Rebalancer:
    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = State.EMPTY
        self.generation = Generation(0, "", None, None)
        self.roster = Roster()
        # Member ids that were given out and have not joined yet.
        self.pending: set[str] = set()
        # Members that joined in this generation and have not sent SyncGroup yet.
        self.unsynced: set[str] = set()
        self.first_wait: FirstWait | None = None
        # A static member under its new id, between the decision and its record. It is ignored if the record
        # is not written.
        self.successor: Member | None = None
        self.saved: GroupMetadataValue | None = None
        self.topics: frozenset[str] | None = None

    def current(self) -> Generation:
        """The generation, with the current leader."""
        return self.generation._replace(leader=self.roster.leader)

    # Records

    def apply(self, value: GroupMetadataValue | None) -> None:
        """Apply a record, live or replayed. Its step has the answers for all parked calls."""
        self.saved = value
        known = {member.id: member.protocols for member in self.roster}
        if self.successor is not None:
            known[self.successor.id] = self.successor.protocols
        self.successor = None
        self.first_wait = None
        if value is None:
            self._move_to(State.DEAD, [], None)
            return
        members = [recorded_member(stored, value.protocol) for stored in value.members]
        for member in members:
            # The record has only the chosen protocol. A member that offered it before has the others, too.
            protocols = known.get(member.id, ())
            if member.protocols[0] in protocols:
                member.protocols = protocols
        self.generation = Generation(value.generation, value.protocol_type, value.protocol, value.leader)
        self._move_to(State.STABLE if members else State.EMPTY, members, value.leader)
        self.topics = self._subscribed_topics()

    def _move_to(self, state: State, members: list[Member], leader: str | None) -> None:
        self.roster.reset(members, leader)
        # This record follows from the leader's SyncGroup; other members may not have sent theirs yet.
        self.unsynced = {member.id for member in members if member.id in self.unsynced} - {leader or ""}
        for step in route(self.state, state):
            self.state = moved(self.state, step)

    def _become_empty(self, plan: Plan) -> None:
        for member in self.roster:
            self._refuse_calls(member, ErrorCode.UNKNOWN_MEMBER_ID, plan)
        plan.cancel(JOIN)
        plan.cancel(SYNC)
        emptied = Generation(self.generation.number + 1, self.generation.protocol_type, None, None)
        plan.record(group_record(self.group_id, group_value(emptied, (), {}, plan.now_ms)))

    # A rebalance begins

    def begin(self, plan: Plan) -> None:
        if self.state is State.COMPLETING:
            self._refuse_parked_syncs(plan)
        self.unsynced.clear()
        plan.cancel(SYNC)
        was_empty = self.state is State.EMPTY
        self.state = moved(self.state, State.PREPARING)
        if was_empty:
            self._wait_for_more(plan)
        elif self._all_have_joined:
            self.complete(plan)
        else:
            plan.after(self.roster.rebalance_timeout_ms, JOIN)

    def begin_or_complete(self, plan: Plan) -> None:
        if self.state is State.PREPARING:
            self.complete_if_joined(plan)
        else:
            self.begin(plan)

    def _wait_for_more(self, plan: Plan) -> None:
        delay_ms = self.settings.initial_rebalance_delay_ms
        self.first_wait = FirstWait(delay_ms, max(self.roster.rebalance_timeout_ms - delay_ms, 0))
        plan.after(delay_ms, JOIN)

    def _refuse_parked_syncs(self, plan: Plan) -> None:
        for member in self.roster:
            if member.sync is not None:
                plan.answer(member.sync, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
                member.sync = None
                # Its session timer may have run out while the call was parked.
                plan.after(member.session_timeout_ms, SESSION, member.id)

    # Joining ends

    @property
    def _all_have_joined(self) -> bool:
        return not self.pending and self.roster.all_joined

    def complete_if_joined(self, plan: Plan) -> None:
        """A group that was empty waits for more members until its timer runs out."""
        if self.state is State.PREPARING and self.first_wait is None and self._all_have_joined:
            self.complete(plan)

    def join_time_is_over(self, plan: Plan) -> None:
        if self.state is not State.PREPARING:
            return
        wait = self.first_wait
        if wait is None or not wait.has_newcomer or wait.remaining_ms == 0:
            self.complete(plan)
            return
        delay_ms = min(self.settings.initial_rebalance_delay_ms, wait.remaining_ms)
        self.first_wait = FirstWait(delay_ms, max(wait.remaining_ms - wait.delay_ms, 0))
        plan.after(delay_ms, JOIN)

    def complete(self, plan: Plan) -> None:
        """Remove the members that did not join again, except static ones: their session timeout decides."""
        silent = {member.id for member in self.roster if member.join is None and not member.is_static}
        if len(silent) == len(self.roster):
            self._become_empty(plan)
            return
        for member_id in silent:
            self._remove(self.roster[member_id], plan)
        self.first_wait = None
        if self.roster.elect_joined_leader():
            plan.cancel(JOIN)
            self._next_generation(plan)
        else:
            # All that are left are static members, and none has joined. Their session timeouts decide.
            plan.after(self.roster.rebalance_timeout_ms, JOIN)

    def _next_generation(self, plan: Plan) -> None:
        protocol_name = self.roster.choose_protocol()
        number = self.generation.number + 1
        self.generation = Generation(number, self.generation.protocol_type, protocol_name, self.roster.leader)
        self.state = moved(self.state, State.COMPLETING)
        self.topics = self._subscribed_topics()
        for member in self.roster:
            if member.join is not None:
                plan.answer(member.join.waiter, self.answer_joined(member))
            member.join = None
            member.is_new = False
            plan.after(member.session_timeout_ms, SESSION, member.id)
        self.unsynced = {member.id for member in self.roster}
        plan.after(self.roster.rebalance_timeout_ms, SYNC)

    def answer_joined(self, member: Member) -> JoinGroupResponse:
        members = self.roster if member.id == self.roster.leader else ()
        return joined(self.current(), member.id, members)

    # Syncing ends

    def has_synced(self, member: Member, plan: Plan) -> None:
        self.unsynced.discard(member.id)
        if not self.unsynced:
            plan.cancel(SYNC)

    def sync_time_is_over(self, plan: Plan) -> None:
        if self.unsynced:
            self.remove_members(frozenset(self.unsynced), plan)

    # Members leave

    def remove_members(self, leaving: Set[str], plan: Plan) -> None:
        if len(leaving) == len(self.roster):
            self._become_empty(plan)
            return
        for member_id in leaving:
            self._remove(self.roster[member_id], plan)
        self.begin_or_complete(plan)

    def forget_pending(self, member_id: str, plan: Plan) -> None:
        if member_id in self.pending:
            self.pending.discard(member_id)
            plan.cancel(PENDING, member_id)
            self.complete_if_joined(plan)

    def take_over(self, old: Member, successor: Member, plan: Plan) -> None:
        """A static member has come back under a new id. Calls under its old id are refused from now on."""
        self._refuse_calls(old, ErrorCode.FENCED_INSTANCE_ID, plan)
        self.roster.replace(old, successor)

    def _remove(self, member: Member, plan: Plan) -> None:
        self._refuse_calls(member, ErrorCode.UNKNOWN_MEMBER_ID, plan)
        self.roster.remove(member.id)

    def _refuse_calls(self, member: Member, code: ErrorCode, plan: Plan) -> None:
        """Refuse a member's parked calls and cancel its timer. A fenced member gets its id in the answer; a
        removed one gets an empty id."""
        plan.cancel(SESSION, member.id)
        member_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else member.id
        if member.join is not None:
            plan.answer(member.join.waiter, join_refused(code, member_id, member.join.version))
        if member.sync is not None:
            plan.answer(member.sync, sync_refused(code))

    def refuse_waiting(self, code: ErrorCode, plan: Plan) -> None:
        """Refuse all parked calls and cancel all timers."""
        for member in self.roster:
            self._refuse_calls(member, code, plan)
        for member_id in self.pending:
            plan.cancel(PENDING, member_id)
        plan.cancel(JOIN)
        plan.cancel(SYNC)

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.generation.protocol_type != CONSUMER:
            return None
        if not len(self.roster):
            return frozenset()
        name = self.generation.protocol_name
        return None if name is None else topics_of(self.roster, name)
