"""What a member's request changes in its group: subscriptions, epochs, the target, its own partitions.

This module only decides: it reads the state and collects records, which change the state when applied."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from barnabas.coordination.patterns import Pattern
from barnabas.groups.assignors import Assignment
from barnabas.groups.classic.plan import JOIN, SESSION, SYNC, Plan
from barnabas.groups.consumer.members import Member, current_record, member_tombstones, metadata_record
from barnabas.groups.consumer.migration import DOWNGRADE, is_downgradable
from barnabas.groups.consumer.reconciliation import Goal, reconcile
from barnabas.groups.consumer.state import ConsumerState, epoch_record, partition_metadata_tombstone
from barnabas.groups.consumer.subscriptions import (
    ResolvedRegex,
    metadata_hash,
    regex_record,
    regexes_of,
    resolve,
    topic_ids,
    topics_of,
    topics_of_all,
)
from barnabas.groups.consumer.target_assignment import compute_target, preferred_assignor, target_records
from barnabas.groups.records import GroupRecord, encode
from barnabas.groups.settings import GroupSettings, TopicsView

# The time a member has to revoke partitions. The other timers are in classic/plan.py.
REBALANCE = "rebalance"


@dataclass(slots=True)
class Change:
    """The group as it will be, and the records that change it."""

    members: Mapping[str, Member]
    regexes: dict[str, ResolvedRegex]
    records: list[GroupRecord] = field(default_factory=list)


class Changes:
    def __init__(self, state: ConsumerState, settings: GroupSettings, topics: TopicsView) -> None:
        self._state = state
        self._settings = settings
        self._topics = topics

    def of_member(
        self, old: Member, new: Member, owned: Assignment | None, now_ms: int, records: list[GroupRecord]
    ) -> Member:
        """The member after its request and one step of reconciliation. Adds what must be written."""
        state = self._state
        names_changed = new.topic_names != old.topic_names
        regex_changed = (new.topic_regex or "") != (old.topic_regex or "")
        if new != old:
            records.append(metadata_record(state.group_id, new))
        change = Change(self._members_with(new), dict(state.regexes), records)
        if regex_changed and new.topic_regex:
            Pattern(new.topic_regex)
        if regex_changed or self._regexes_are_old(now_ms):
            state.must_resolve = state.must_resolve and regex_changed
            regex_changed |= self._update_regexes(change, now_ms, refresh=not regex_changed)
        epoch = state.epoch
        if epoch == 0 or names_changed or regex_changed:
            epoch = self._bump(change)
        subscription_changed = names_changed or regex_changed
        share = self._share(change, new, epoch, now_ms)
        if not subscription_changed and new.is_reconciled_to(max(epoch, state.target_epoch)):
            return new
        goal = Goal(
            epoch=max(epoch, state.target_epoch),
            target=share,
            subscribed=topic_ids(topics_of(new, change.regexes), self._topics),
            subscription_changed=subscription_changed,
            is_free=state.is_free,
            owned=owned,
        )
        reconciled = reconcile(new, goal)
        if reconciled != new:
            records.append(current_record(state.group_id, reconciled))
        return reconciled

    def of_departure(self, leaving: Collection[str]) -> list[GroupRecord]:
        """What changes for the group when members leave: unused regular expressions, and the epoch."""
        members = {name: member for name, member in self._state.members.items() if name not in leaving}
        change = Change(members, dict(self._state.regexes))
        self._forget_regexes(change)
        self._bump(change)
        return change.records

    def of_topics(self, now_ms: int) -> list[GroupRecord]:
        """Topics were created, deleted or got partitions: a new epoch if members subscribe to one of them."""
        state = self._state
        change = Change(state.members, dict(state.regexes))
        state.must_resolve = bool(state.regexes) and self._topics.names() is None
        topics_changed = self._update_regexes(change, now_ms, refresh=True, only_changed=True)
        if topics_changed or self._hash(change) != state.metadata_hash:
            self._bump(change)
        return change.records

    # ---- parts

    def _members_with(self, member: Member) -> Mapping[str, Member]:
        if self._state.members.get(member.member_id) == member:
            return self._state.members
        members = dict(self._state.members)
        if member.instance_id is not None:
            # The member that had this instance id before is replaced.
            members.pop(self._state.instances.get(member.instance_id, ""), None)
        members[member.member_id] = member
        return members

    def _regexes_are_old(self, now_ms: int) -> bool:
        interval_ms = self._settings.consumer_regex_refresh_interval_ms
        return self._state.must_resolve or any(
            now_ms > each.resolved_at_ms + interval_ms for each in self._state.regexes.values()
        )

    def _update_regexes(
        self, change: Change, now_ms: int, *, refresh: bool, only_changed: bool = False
    ) -> bool:
        """Resolve new expressions, or with `refresh` all of them; True if the matching topics changed."""
        differs = self._forget_regexes(change)
        used = regexes_of(change.members.values())
        due = [expression for expression in sorted(used) if refresh or expression not in change.regexes]
        for expression, resolved in resolve(due, self._topics, now_ms).items():
            before = change.regexes.get(expression)
            is_same = before is not None and before.topics == resolved.topics
            if is_same and only_changed:
                continue
            differs = differs or not is_same
            change.regexes[expression] = resolved
            change.records.append(regex_record(self._state.group_id, expression, resolved))
        return differs

    def _forget_regexes(self, change: Change) -> bool:
        unused = sorted(change.regexes.keys() - regexes_of(change.members.values()).keys())
        for expression in unused:
            del change.regexes[expression]
            change.records.append(regex_record(self._state.group_id, expression, None))
        return bool(unused)

    def _hash(self, change: Change) -> int:
        return metadata_hash(topics_of_all(change.members.values(), change.regexes), self._topics)

    def _bump(self, change: Change) -> int:
        group_id, epoch = self._state.group_id, self._state.epoch + 1
        change.records.append(epoch_record(group_id, epoch, self._hash(change)))
        if self._state.has_partition_metadata:
            change.records.append(partition_metadata_tombstone(group_id))
        return epoch

    def _share(self, change: Change, member: Member, epoch: int, now_ms: int) -> Assignment:
        """The member's part of the target. A new target is computed if the group has a newer epoch."""
        state = self._state
        if epoch <= state.target_epoch:
            return state.share(member)
        shares = {name: state.share(each) for name, each in change.members.items()}
        assignor = preferred_assignor(change.members.values(), self._settings.consumer_assignors[0])
        target = compute_target(change.members, shares, change.regexes, self._topics, assignor)
        change.records += target_records(state.group_id, state.targets, target, epoch, now_ms)
        return target[member.member_id]


class Departures:
    def __init__(self, state: ConsumerState, settings: GroupSettings, changes: Changes) -> None:
        self._state = state
        self._settings = settings
        self._changes = changes

    def fence(self, member_ids: Collection[str], plan: Plan) -> None:
        """Remove members. Their partitions are free at once, even if the members do not know it yet."""
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
