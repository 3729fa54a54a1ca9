"""Members that speak the classic protocol in a consumer group, and groups that change their protocol."""

from typing import Any

import pytest
from tests.support.consumer_group_story import CLIENT, GROUP, ConsumerGroupStory, FakeTopics

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import Export
from barnabas.groups.classic.members import ClientInfo, Member, Protocol
from barnabas.groups.classic.protocol import by_topic_id, read_assignment
from barnabas.groups.classic.records import Generation
from barnabas.groups.consumer.group import ConsumerGroup, State
from barnabas.groups.group import Committer
from barnabas.groups.record_schemas import GroupMetadataKey, GroupMetadataValue
from barnabas.groups.settings import GroupSettings
from barnabas.wire.codec import encode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_assignment import TopicPartition as Assigned
from barnabas.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest

SESSION_MS = 10_000
REBALANCE_MS = 30_000


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code is code)


def subscription(topics: list[str], owned: dict[str, list[int]] | None = None) -> bytes:
    listed = [TopicPartition(topic=topic, partitions=numbers) for topic, numbers in (owned or {}).items()]
    message = ConsumerProtocolSubscription(topics=topics, owned_partitions=listed)
    return b"\0\1" + encode_message(message, 1, NEVER)


def assignment(owned: dict[str, list[int]], user_data: bytes | None = None) -> bytes:
    listed = [Assigned(topic=topic, partitions=numbers) for topic, numbers in owned.items()]
    message = ConsumerProtocolAssignment(assigned_partitions=listed, user_data=user_data)
    return b"\0\1" + encode_message(message, 1, NEVER)


class ClassicStory(ConsumerGroupStory):
    def classic_join(
        self, member_id: str, owned: dict[str, list[int]] | None = None, **fields: Any
    ) -> JoinGroupResponse:
        fields.setdefault("protocol_type", "consumer")
        name = fields.pop("protocol", "range")
        version = fields.pop("version", 9)
        metadata = fields.pop("metadata", subscription(["t"], owned))
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            session_timeout_ms=fields.pop("session_timeout_ms", SESSION_MS),
            rebalance_timeout_ms=REBALANCE_MS,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata)],
            **fields,
        )
        return self.take(self.group.join(request, CLIENT, version, self.now_ms))

    def classic_sync(self, member_id: str, generation: int, **fields: Any) -> tuple[int, list[int]]:
        request = SyncGroupRequest(group_id=GROUP, member_id=member_id, generation_id=generation, **fields)
        answer = self.take(self.group.sync(request, self.now_ms))
        if answer.error_code:
            return (answer.error_code, [])
        partitions = by_topic_id(read_assignment(answer.assignment).assigned_partitions, self.topics)
        return (0, sorted(number for numbers in partitions.values() for number in numbers))

    def classic_beat(self, member_id: str, generation: int) -> int:
        request = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation)
        return self.take(self.group.classic_heartbeat(request, self.now_ms)).error_code

    def classic_leave(self, *identities: MemberIdentity) -> list[int]:
        request = LeaveGroupRequest(group_id=GROUP, members=list(identities))
        return [each.error_code for each in self.take(self.group.leave(request, self.now_ms)).members]


def new_story(**settings: Any) -> ClassicStory:
    settings.setdefault("migration_policy", "bidirectional")
    return ClassicStory(FakeTopics(t=4), GroupSettings(**settings))


# ---- classic members


def test_a_classic_member_follows_by_joining_again() -> None:
    story = new_story()
    story.join("new")
    joined = story.classic_join("old")
    assert (joined.member_id, joined.generation_id, joined.protocol_name) == ("old", 2, "range")
    assert not joined.members, "it does not lead: the coordinator assigns"
    assert story.classic_sync("old", 2) == (0, [])
    assert story.classic_beat("old", 2) == 0, "it waits for what the other still has"

    story.beat("new")
    story.beat("new")
    assert story.classic_beat("old", 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert story.classic_join("old").generation_id == 2
    assert story.classic_sync("old", 2) == (0, [2, 3])
    assert story.group.state is State.STABLE


def test_a_classic_member_gives_partitions_up_when_it_joins() -> None:
    story = new_story()
    story.join("new")
    story.leave("new")
    story.join("first")
    story.classic_join("old")
    story.leave("first")
    assert story.classic_beat("old", 4) == ErrorCode.REBALANCE_IN_PROGRESS
    generation = story.classic_join("old").generation_id
    assert story.classic_sync("old", generation) == (0, [0, 1, 2, 3])

    story.join("new")
    assert story.classic_beat("old", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = story.classic_join("old", {"t": [0, 1, 2, 3]})
    assert joined.generation_id == generation, "it keeps its epoch while it has to give partitions up"
    error, kept = story.classic_sync("old", generation)
    assert (error, len(kept)) == (0, 2)
    assert story.beat("new").assignment is None
    story.classic_join("old", {"t": kept})
    story.beat("new")
    assert len(story.members["new"].owned) == 2


def test_a_new_classic_member_must_come_with_the_id_it_is_given() -> None:
    story = new_story()
    story.join("new")
    answer = story.classic_join("")
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id
    assert list(story.group.durable.members) == ["new"]
    assert story.classic_join("", version=3).error_code == 0


def test_a_classic_member_must_share_a_protocol() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    for fields in ({"protocol": "other"}, {"protocol_type": "connect"}, {"metadata": b""}):
        with refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
            story.classic_join("older", **fields)
    with refused(ErrorCode.INVALID_SESSION_TIMEOUT):
        story.classic_join("older", session_timeout_ms=1)


def test_a_classic_member_must_name_its_generation() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    with refused(ErrorCode.ILLEGAL_GENERATION):
        story.classic_beat("old", 1)
    with refused(ErrorCode.ILLEGAL_GENERATION):
        story.classic_sync("old", 1)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        story.classic_beat("new", 1)
    with refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
        story.classic_sync("old", 2, protocol_name="other")
    with refused(ErrorCode.ILLEGAL_GENERATION):
        story.group.check_commit(Committer("old", None, 3), transactional=False, version=8)
    story.group.check_commit(Committer("old", None, 2), transactional=False, version=8)


def test_a_sync_that_comes_too_late_is_sent_back() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    story.join("newer")
    assert story.classic_sync("old", 2) == (ErrorCode.REBALANCE_IN_PROGRESS, [])


def test_a_classic_member_that_does_not_join_again_is_removed() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    story.classic_sync("old", 2)
    story.join("newer")
    for _ in range(6):
        assert "old" in story.group.durable.members
        story.classic_beat("old", 2)
        story.pass_time(REBALANCE_MS // 6)
    assert "old" not in story.group.durable.members


def test_a_silent_classic_member_is_removed_after_its_session_timeout() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    story.pass_time(SESSION_MS - 1)
    assert "old" in story.group.durable.members
    story.pass_time(1)
    assert list(story.group.durable.members) == ["new"]


def test_members_of_either_protocol_are_removed_by_an_admin() -> None:
    story = new_story()
    story.join("new", instance_id="one")
    story.classic_join("old")
    codes = story.classic_leave(
        MemberIdentity(group_instance_id="one"),
        MemberIdentity(member_id="old"),
        MemberIdentity(member_id="stranger"),
        MemberIdentity(member_id="stranger", group_instance_id="one"),
    )
    assert codes == [0, 0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID]
    assert story.group.is_empty


def test_a_classic_member_becomes_a_consumer_member() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    story.join("old")
    assert story.group.durable.members["old"].classic is None
    assert ("group", GROUP, "sync", "old") not in story.timers
    story.settle()
    assert len(story.members["old"].owned) == 2


# ---- down


def test_a_group_with_classic_members_only_becomes_a_classic_group() -> None:
    story = new_story()
    story.join("new")
    story.classic_join("old")
    story.leave("new")
    start = len(story.journal)
    assert ("group", GROUP, "downgrade") in story.timers
    story.take(story.group.lapse(("group", GROUP, "downgrade"), story.now_ms))
    last = story.typed(start)[-1]
    assert isinstance(last.key, GroupMetadataKey)
    assert isinstance(last.value, GroupMetadataValue)
    assert (last.value.generation, last.value.protocol, last.value.leader) == (2, "range", None)
    assert [member.member_id for member in last.value.members] == ["old"]
    assert story.group.state is State.DEAD
    assert ("group", GROUP, "downgraded") in story.timers


def test_a_group_stays_when_downgrades_are_off() -> None:
    story = new_story(migration_policy="upgrade")
    story.join("new")
    story.classic_join("old")
    story.leave("new")
    assert ("group", GROUP, "downgrade") not in story.timers
    generation = story.classic_join("old").generation_id
    assert story.classic_sync("old", generation) == (0, [0, 1, 2, 3])


def test_when_the_last_consumer_member_becomes_classic_so_does_the_group() -> None:
    story = new_story()
    story.join("new", instance_id="one")
    owned = story.members["new"].owned
    joined = story.classic_join("", group_instance_id="one")
    assert joined.error_code == 0
    member = story.group.durable.members[joined.member_id]
    assert {number for numbers in member.assigned.values() for number in numbers} == {n for _, n in owned}
    assert ("group", GROUP, "downgrade") in story.timers


# ---- up


def export(assigned: bytes, metadata: bytes, protocol_type: str = "consumer") -> Export:
    member = Member(
        id="old",
        instance_id=None,
        client=ClientInfo("client", "/host"),
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        protocols=(Protocol("range", metadata),),
        assignment=assigned,
    )
    return Export(Generation(5, protocol_type, "range", "old"), (member,))


def test_a_classic_group_goes_on_as_a_consumer_group() -> None:
    story = new_story()
    old = export(assignment({"t": [0, 1, 2, 3]}), subscription(["t"]))
    story.group, step = ConsumerGroup.upgraded(GROUP, old, story.settings, story.topics, story.now_ms)
    story.take(step)
    assert story.group.state is State.STABLE
    assert story.timers == {("group", GROUP, "session", "old"): story.now_ms + SESSION_MS}

    assert story.join("new").member_epoch == 6
    assert story.classic_beat("old", 5) == ErrorCode.REBALANCE_IN_PROGRESS
    story.classic_join("old", {"t": [0, 1, 2, 3]})
    error, kept = story.classic_sync("old", 5)
    assert (error, len(kept)) == (0, 2)
    story.classic_join("old", {"t": kept})
    story.beat("new")
    assert len(story.members["new"].owned) == 2
    assert vars(story.replayed().durable) == vars(story.group.durable)


@pytest.mark.parametrize(
    ("old", "policy"),
    [
        (export(b"", subscription(["t"])), "downgrade"),
        (export(b"", subscription(["t"])), "disabled"),
        (export(b"", subscription(["t"]), "connect"), "bidirectional"),
        (export(b"", b"\0"), "bidirectional"),
        (export(assignment({}, b"secret"), subscription(["t"])), "bidirectional"),
    ],
)
def test_what_cannot_be_upgraded_stays_a_classic_group(old: Export, policy: str) -> None:
    story = new_story(migration_policy=policy)
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        ConsumerGroup.upgraded(GROUP, old, story.settings, story.topics, story.now_ms)
