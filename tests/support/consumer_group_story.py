"""A consumer group with its members, a journal and a clock, for tests.

Members keep the protocol's rules: they adopt the epoch and the partitions of each answer, and say what they
own once they have given partitions up. A test can make one slow, lose its answers, or let time pass."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from barnabas.coordination.step import JournalRecord, Step
from barnabas.groups.classic.members import ClientInfo
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.record_schemas import GroupMetadataKey
from barnabas.groups.records import GroupRecord, decode
from barnabas.groups.settings import GroupSettings
from barnabas.ids import Uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Reply = TypeVar("Reply")
GROUP = "group"
CLIENT = ClientInfo("client", "/127.0.0.1")
REBALANCE_TIMEOUT_MS = 60_000
_SUBSCRIPTION = ("subscribed_topic_names", "subscribed_topic_regex")


class FakeTopics:
    """Topics that are created, deleted and extended. A topic that is created again has another id."""

    def __init__(self, **counts: int) -> None:
        self._counts: dict[str, int] = {}
        self._ids: dict[str, Uuid] = {}
        self._made = 0
        for name, count in counts.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> None:
        self._made += 1
        self._counts[name] = count
        self._ids[name] = self._made.to_bytes(16, "big")

    def grow(self, name: str, count: int) -> None:
        self._counts[name] = count

    def delete(self, name: str) -> None:
        del self._counts[name], self._ids[name]

    def partition_count(self, topic: str) -> int | None:
        return self._counts.get(topic)

    def topic_id(self, topic: str) -> Uuid | None:
        return self._ids.get(topic)

    def topic_name(self, topic_id: Uuid) -> str | None:
        return next((name for name, each in self._ids.items() if each == topic_id), None)

    def names(self) -> Iterable[str]:
        return list(self._counts)

    def partitions(self) -> set[tuple[Uuid, int]]:
        return {(self._ids[name], number) for name, count in self._counts.items() for number in range(count)}


@dataclass(slots=True)
class StoryMember:
    """What a client knows about its membership."""

    member_id: str
    instance_id: str | None = None
    epoch: int = 0
    # What is assigned to it, and what it reads: also partitions that it has not revoked yet.
    target: set[tuple[Uuid, int]] = field(default_factory=set)
    owned: set[tuple[Uuid, int]] = field(default_factory=set)
    must_report: bool = False
    # The subscription that it sent last, and whether it must send all fields again after a lost answer.
    subscription: dict[str, Any] = field(default_factory=dict)
    must_send_all: bool = False

    def adopt(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            return
        listed = answer.assignment.topic_partitions
        self.target = {(each.topic_id, number) for each in listed for number in each.partitions}
        self.must_report |= self.target != self.owned
        self.owned |= self.target

    def report(self) -> list[TopicPartitions]:
        """Revoke what is no longer assigned, and return what is left."""
        self.owned = set(self.target)
        self.must_report = False
        by_topic: dict[Uuid, list[int]] = {}
        for topic, number in sorted(self.owned):
            by_topic.setdefault(topic, []).append(number)
        return [TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in by_topic.items()]


class ConsumerGroupStory:
    def __init__(self, topics: FakeTopics, settings: GroupSettings | None = None) -> None:
        self.topics = topics
        self.settings = settings or GroupSettings()
        self.group = ConsumerGroup(GROUP, self.settings, topics)
        self.members: dict[str, StoryMember] = {}
        self.journal: list[JournalRecord] = []
        self.now_ms = 1_000_000
        # When each timer runs out.
        self.timers: dict[Hashable, int] = {}

    # ---- members

    def join(
        self, name: str, topics: Iterable[str] = ("t",), *, adopt: bool = True, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """A full request at epoch 0; `fields` are of the request."""
        member = StoryMember(name, fields.get("instance_id"))
        fields.setdefault("subscribed_topic_names", list(topics))
        fields.setdefault("rebalance_timeout_ms", REBALANCE_TIMEOUT_MS)
        answer = self.send(member_id=name, member_epoch=0, topic_partitions=[], **fields)
        self.members[name] = member
        member.subscription = {key: value for key, value in fields.items() if key in _SUBSCRIPTION}
        if adopt:
            member.adopt(answer)
        return answer

    def beat(
        self, name: str, *, adopt: bool = True, report: bool = True, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat with what changed; without `report`, the member is slow to revoke partitions."""
        member = self.members[name]
        member.subscription |= {key: value for key, value in fields.items() if key in _SUBSCRIPTION}
        if member.must_send_all:
            fields = {**member.subscription, "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, **fields}
            member.must_report = report = True
        fields.setdefault("topic_partitions", member.report() if member.must_report and report else None)
        fields.setdefault("member_epoch", member.epoch)
        answer = self.send(member_id=member.member_id, instance_id=member.instance_id, **fields)
        member.must_send_all = not adopt
        if adopt:
            member.adopt(answer)
        return answer

    def leave(self, name: str, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        member = self.members.pop(name)
        return self.send(
            member_id=member.member_id,
            member_epoch=epoch,
            instance_id=member.instance_id,
            topic_partitions=None,
        )

    def send(self, *, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, **fields)
        return self.take(self.group.heartbeat(request, CLIENT, version, self.now_ms))

    def settle(self, heartbeats: int = 20) -> None:
        """All members send heartbeats until nothing more is written."""
        for _ in range(heartbeats):
            written = len(self.journal)
            for name in list(self.members):
                self.beat(name)
            if len(self.journal) == written:
                return
        raise AssertionError(
            f"the group is not stable after {heartbeats} heartbeats: {self.group.state_name}"
        )

    def owned(self, name: str) -> dict[str, list[int]]:
        partitions: dict[str, list[int]] = {}
        for topic, number in sorted(self.members[name].owned):
            partitions.setdefault(self.topics.topic_name(topic) or "deleted", []).append(number)
        return partitions

    # ---- the runtime

    def take(self, step: Step[Reply]) -> Reply:
        for record in step.records:
            self.journal.append(record)
            _apply(self.group, record)
        for key in step.cancelled:
            self.timers.pop(key, None)
        for timer in step.timers:
            self.timers[timer.key] = self.now_ms + timer.delay_ms
        return step.reply

    def pass_time(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.timers:
            key, due_ms = min(self.timers.items(), key=lambda item: item[1])
            if due_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, due_ms)
            del self.timers[key]
            self.take(self.group.lapse(key, self.now_ms))
        self.now_ms = end_ms

    def topics_changed(self) -> None:
        self.take(self.group.topics_changed(self.now_ms))

    def replayed(self, *, compacted: bool = False) -> ConsumerGroup:
        """The group as another broker would load it from the journal."""
        records = self.journal
        if compacted:
            last = {record.key: number for number, record in enumerate(records)}
            records = [record for number, record in enumerate(records) if last[record.key] == number]
        group = ConsumerGroup(GROUP, self.settings, self.topics)
        for record in records:
            _apply(group, record)
        return group

    def fail_over(self) -> None:
        """Another broker takes over: state in memory is lost, timers start again."""
        self.group = self.replayed()
        self.timers.clear()
        self.take(self.group.loaded(self.now_ms))

    def typed(self, start: int = 0) -> list[GroupRecord]:
        """The decoded records of the journal from a position on."""
        records = [decode(record) for record in self.journal[start:]]
        return [record for record in records if record is not None]


def _apply(group: ConsumerGroup, journaled: JournalRecord) -> None:
    record = decode(journaled)
    assert record is not None
    # Records of a classic group with the same name are not for this group.
    if not isinstance(record.key, GroupMetadataKey):
        group.apply(record)
