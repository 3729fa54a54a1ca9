"""Random histories of a machine: both protocols, failovers, full disks. Whatever happens, a replay of the
journal gives the durable state, nobody is answered twice, and only what may change offsets does."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.group_machines import Answer, FakeTopics, MachineBench, durable

from barnabas.coordination.step import Producer, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import ClassicGroup, ClientInfo
from barnabas.groups.machine import GroupMachine
from barnabas.groups.settings import GroupSettings
from barnabas.wire.codec import encode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

CLIENT = ClientInfo("client", "/host")
TOPICS = ("x", "xy")
GROUPS = st.sampled_from(["a", "b"])
MEMBERS = st.integers(0, 3)
INSTANCES = st.sampled_from([None, None, "static"])
TOPIC_SETS = st.sampled_from([("x",), ("x", "xy")])
SHARD_SETTINGS = GroupSettings(initial_rebalance_delay_ms=50, offsets_retention_ms=50_000, max_size=3)


def with_version(message: Any) -> bytes:
    return b"\x00\x00" + encode_message(message, 0, NEVER)


class Shards(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        topics = FakeTopics()
        for topic in TOPICS:
            topics.make(topic, 2)
        self.bench = MachineBench(SHARD_SETTINGS, topics)
        self.answers: list[Answer] = []
        # What clients know: their member ids and generations, by group and number.
        self.classic: dict[tuple[str, int], tuple[str, int]] = {}
        self.modern: dict[tuple[str, int], int] = {}

    # ---- how calls are made

    def offsets(self) -> object:
        return self.bench.machine.groups.offsets.durable_state()

    def ask(self, decide: Callable[[GroupMachine, Answer], Step[Any]]) -> Any:
        """The answer, if there is one yet."""
        before = self.offsets()
        try:
            answer = self.bench.ask(decide)
        except KafkaError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert self.bench.disk_is_full
            return None
        assert self.offsets() == before
        self.answers.append(answer)
        return answer.values[0] if answer.values else None

    def call(self, decide: Callable[[GroupMachine], Step[Any]]) -> Any:
        try:
            return self.bench.call(decide)
        except KafkaError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert self.bench.disk_is_full
            return None

    # ---- the classic protocol

    @rule(group=GROUPS, number=MEMBERS, instance=INSTANCES, topics=TOPIC_SETS)
    def join(self, group: str, number: int, instance: str | None, topics: tuple[str, ...]) -> None:
        member_id, _ = self.classic.get((group, number), ("", 0))
        metadata = with_version(ConsumerProtocolSubscription(topics=list(topics)))
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=8_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = self.ask(
            lambda machine, waiter: machine.join_group(request, CLIENT, 9, waiter, self.bench.now_ms)
        )
        if answer is None:
            return
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.classic[group, number] = (answer.member_id, answer.generation_id)
        elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.classic.pop((group, number), None)

    @rule(group=GROUPS, number=MEMBERS)
    def sync(self, group: str, number: int) -> None:
        """The leader gives everything to the first member it knows of."""
        state = self.bench.machine.groups.find(group)
        member_id, generation = self.classic.get((group, number), ("stranger", 1))
        members: list[str] = []
        if isinstance(state, ClassicGroup):
            generation = state.generation
            members = [member.id for member in state.members]
        assigned = [AssignedPartitions(topic=topic, partitions=[0, 1]) for topic in self.bench.topics.counts]
        shares = [
            SyncGroupRequestAssignment(
                member_id=name,
                assignment=with_version(
                    ConsumerProtocolAssignment(assigned_partitions=[] if index else assigned)
                ),
            )
            for index, name in enumerate(members)
        ]
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=shares,
        )
        answer = self.ask(lambda machine, waiter: machine.sync_group(request, 5, waiter, self.bench.now_ms))
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.classic[group, number] = (member_id, generation)

    @rule(group=GROUPS, number=MEMBERS)
    def heartbeat(self, group: str, number: int) -> None:
        member_id, generation = self.classic.get((group, number), ("stranger", 1))
        request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
        self.ask(lambda machine, _: machine.heartbeat(request, self.bench.now_ms))

    @rule(group=GROUPS, number=MEMBERS)
    def leave(self, group: str, number: int) -> None:
        member_id, _ = self.classic.pop((group, number), ("stranger", 1))
        request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
        self.ask(lambda machine, _: machine.leave_group(request, 5, self.bench.now_ms))

    @rule(group=GROUPS, numbers=st.sets(MEMBERS, min_size=1), topics=TOPIC_SETS)
    def round(self, group: str, numbers: set[int], topics: tuple[str, ...]) -> None:
        """Several members join, wait for each other and take their shares."""
        for number in sorted(numbers) * 2:
            self.join(group, number, None, topics)
        self.time_passes(60)
        state = self.bench.machine.groups.find(group)
        leader = state.leader if isinstance(state, ClassicGroup) else None
        for number in sorted(numbers, key=lambda each: self.classic.get((group, each), ("",))[0] == leader):
            self.sync(group, number)

    # ---- the consumer protocol

    @rule(
        group=GROUPS,
        number=MEMBERS,
        topics=TOPIC_SETS | st.none(),
        owns=st.none() | st.booleans(),
    )
    def consumer_heartbeat(
        self, group: str, number: int, topics: tuple[str, ...] | None, owns: bool | None
    ) -> None:
        epoch = self.modern.get((group, number), 0)
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=f"m{number}", member_epoch=epoch)
        if epoch == 0:
            request.rebalance_timeout_ms = 8_000
            request.topic_partitions = []
            # Without names the member subscribes with a pattern.
            request.subscribed_topic_names = None if topics is None else list(topics)
            request.subscribed_topic_regex = "x.*" if topics is None else None
        elif owns is not None:
            owned = [TopicPartitions(topic_id=self.bench.topics.id_of("x"), partitions=[0])]
            request.topic_partitions = owned if owns else []
        answer = self.ask(
            lambda machine, _: machine.consumer_group_heartbeat(request, CLIENT, 1, self.bench.now_ms)
        )
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.modern[group, number] = answer.member_epoch
        elif answer is not None:
            self.modern.pop((group, number), None)

    @rule(group=GROUPS, number=MEMBERS)
    def consumer_leaves(self, group: str, number: int) -> None:
        self.modern.pop((group, number), None)
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=f"m{number}", member_epoch=-1)
        self.ask(lambda machine, _: machine.consumer_group_heartbeat(request, CLIENT, 1, self.bench.now_ms))

    @rule(group=GROUPS)
    def consumers_leave(self, group: str) -> None:
        for _, number in [key for key in self.modern if key[0] == group]:
            self.consumer_leaves(group, number)

    # ---- offsets

    @rule(group=GROUPS, number=MEMBERS, who=st.sampled_from(["classic", "modern", "nobody"]))
    def commit(self, group: str, number: int, who: str) -> None:
        member_id, generation = "", -1
        if who == "classic":
            member_id, generation = self.classic.get((group, number), ("stranger", 1))
        elif who == "modern":
            member_id, generation = f"m{number}", self.modern.get((group, number), 1)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=self.bench.now_ms)
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="x", partitions=[partition])],
        )
        before = self.offsets()
        answer = self.call(lambda machine: machine.offset_commit(request, 9, self.bench.now_ms))
        if answer is None or answer.topics[0].partitions[0].error_code != ErrorCode.NONE:
            assert self.offsets() == before

    @rule(group=GROUPS, producer=st.integers(1, 2))
    def commit_in_transaction(self, group: str, producer: int) -> None:
        partition = TxnOffsetCommitRequestPartition(partition_index=1, committed_offset=self.bench.now_ms)
        request = TxnOffsetCommitRequest(
            group_id=group,
            producer_id=producer,
            topics=[TxnOffsetCommitRequestTopic(name="x", partitions=[partition])],
        )
        self.call(lambda machine: machine.txn_offset_commit(request, 5, self.bench.now_ms))

    @rule(producer=st.integers(1, 2), is_commit=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool) -> None:
        self.bench.marker(Producer(producer, 0), is_commit)

    # ---- administrators, topics, time, faults

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        answer = self.call(lambda machine: machine.delete_group(group, self.bench.now_ms))
        if answer is not None and answer.error_code == ErrorCode.NONE:
            assert self.bench.machine.groups.find(group) is None
            assert not self.bench.machine.groups.offsets.has_group(group)

    @rule()
    def expire(self) -> None:
        self.call(lambda machine: machine.expire_offsets(machine.groups.ids(), self.bench.now_ms))

    @rule(topic=st.sampled_from(TOPICS))
    def create_topic_again(self, topic: str) -> None:
        old_id = self.bench.topics.id_of(topic)
        self.bench.topics.make(topic, 3)
        self.call(lambda machine: machine.topics_deleted(machine.groups.ids(), {topic: old_id}))
        self.call(lambda machine: machine.topics_changed(self.bench.now_ms))

    @rule()
    def add_partitions(self) -> None:
        self.bench.topics.counts["xy"] += 1
        self.call(lambda machine: machine.topics_changed(self.bench.now_ms))

    @rule(duration_ms=st.sampled_from([0, 1, 60, 5_000, 12_000, 60_000]))
    def time_passes(self, duration_ms: int) -> None:
        before = self.offsets()
        self.bench.pass_time(duration_ms)
        assert self.offsets() == before

    @rule()
    def fail_over(self) -> None:
        if not self.bench.disk_is_full:
            self.bench.fail_over()

    @rule(is_full=st.booleans())
    def disk(self, is_full: bool) -> None:
        self.bench.disk_is_full = is_full

    @invariant()
    def replay_gives_the_same_state(self) -> None:
        assert durable(self.bench.replayed()) == durable(self.bench.machine)

    @invariant()
    def so_does_a_replay_of_what_compaction_leaves(self) -> None:
        assert durable(self.bench.replayed_compacted()) == durable(self.bench.machine)

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        assert all(len(answer.values) <= 1 for answer in self.answers)

    @invariant()
    def groups_can_be_shown(self) -> None:
        for group in self.bench.machine.groups:
            group.describe()


ShardsTest = Shards.TestCase
ShardsTest.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
