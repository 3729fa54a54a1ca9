"""Calls on a GroupMachine in a few words, for stories about groups of either kind."""

from typing import Any

from tests.support.group_machines import Answer, MachineBench, durable

from barnabas.errors import ErrorCode
from barnabas.groups.classic.group import ClientInfo
from barnabas.groups.settings import GroupSettings
from barnabas.wire.codec import encode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListedGroup
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "group"
CLIENT = ClientInfo("client", "/10.0.0.1")
SETTINGS = GroupSettings(initial_rebalance_delay_ms=100)
RETENTION_MS = SETTINGS.offsets_retention_ms


def subscription() -> bytes:
    return b"\x00\x00" + encode_message(ConsumerProtocolSubscription(topics=["topic"]), 0, NEVER)


def assignment(*partitions: int) -> bytes:
    assigned = AssignedPartitions(topic="topic", partitions=list(partitions))
    value = ConsumerProtocolAssignment(assigned_partitions=[assigned] if partitions else [])
    return b"\x00\x00" + encode_message(value, 0, NEVER)


def join_request(member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription())],
    )


def ask_to_join(
    bench: MachineBench, member_id: str = "", instance_id: str | None = None, version: int = 9
) -> Answer:
    request = join_request(member_id, instance_id)
    return bench.ask(
        lambda machine, waiter: machine.join_group(request, CLIENT, version, waiter, bench.now_ms)
    )


def new_member_id(bench: MachineBench) -> str:
    answer = ask_to_join(bench).value
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    member_id: str = answer.member_id
    return member_id


def ask_to_sync(bench: MachineBench, member_id: str, generation: int, **assigned: bytes) -> Answer:
    request = SyncGroupRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in assigned.items()
        ],
    )
    return bench.ask(lambda machine, waiter: machine.sync_group(request, 5, waiter, bench.now_ms))


def stable_member(bench: MachineBench, instance_id: str | None = None) -> tuple[str, int]:
    """A group of one, with all partitions: its member id and generation."""
    member_id = "" if instance_id is not None else new_member_id(bench)
    joined = ask_to_join(bench, member_id, instance_id)
    bench.pass_time(100)
    member_id, generation = joined.value.member_id, joined.value.generation_id
    synced = ask_to_sync(bench, member_id, generation, **{member_id: assignment(0, 1, 2, 3)})
    assert synced.value.error_code == ErrorCode.NONE
    return member_id, generation


def heartbeat(bench: MachineBench, member_id: str, generation: int, group: str = GROUP) -> int:
    request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
    code: int = bench.call(lambda machine: machine.heartbeat(request, bench.now_ms)).error_code
    return code


def leave(bench: MachineBench, member_id: str, group: str = GROUP) -> object:
    request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
    answer = bench.call(lambda machine: machine.leave_group(request, 5, bench.now_ms))
    return answer.error_code, [member.error_code for member in answer.members]


# Members of the consumer protocol


def consumer_heartbeat(
    bench: MachineBench, member_id: str = "modern", epoch: int = 0, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    joining: dict[str, Any] = {}
    if epoch == 0:
        joining = {
            "rebalance_timeout_ms": 5000,
            "subscribed_topic_names": ["topic"],
            "topic_partitions": [],
        }
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, **joining | fields
    )
    answer: ConsumerGroupHeartbeatResponse = bench.call(
        lambda machine: machine.consumer_group_heartbeat(request, CLIENT, 1, bench.now_ms)
    )
    return answer


# Offsets


def commit(
    bench: MachineBench,
    offset: int = 7,
    member_id: str = "",
    generation: int = -1,
    version: int = 9,
    **fields: Any,
) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="topic", partitions=[partition])
    request = OffsetCommitRequest(
        **{"group_id": GROUP, "topics": [topic], "member_id": member_id} | fields,
        generation_id_or_member_epoch=generation,
    )
    answer = bench.call(lambda machine: machine.offset_commit(request, version, bench.now_ms))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def txn_commit(
    bench: MachineBench,
    offset: int = 7,
    member_id: str = "",
    generation: int = -1,
    producer_id: int = 5,
    group: str = GROUP,
) -> int:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=group,
        producer_id=producer_id,
        member_id=member_id,
        generation_id=generation,
        topics=[TxnOffsetCommitRequestTopic(name="topic", partitions=[partition])],
    )
    answer = bench.call(lambda machine: machine.txn_offset_commit(request, 5, bench.now_ms))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetch(
    bench: MachineBench, *, stable: bool = False, member_id: str | None = None, epoch: int = -1
) -> tuple[int, int]:
    """(error, offset)."""
    request = OffsetFetchRequestGroup(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        topics=[OffsetFetchRequestTopics(name="topic", partition_indexes=[0])],
    )
    answer = bench.call(lambda machine: machine.offset_fetch(request, stable))
    if answer.error_code:
        return answer.error_code, -1
    partition = answer.topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


def delete_group(bench: MachineBench, group: str = GROUP) -> int:
    code: int = bench.call(lambda machine: machine.delete_group(group, bench.now_ms)).error_code
    return code


def listed(
    bench: MachineBench, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> list[ListedGroup]:
    groups: list[ListedGroup] = bench.call(lambda machine: machine.list_groups(states, types))
    return groups


def group_kind(bench: MachineBench) -> type | None:
    group = bench.machine.groups.find(GROUP)
    return None if group is None else type(group)


def check_replay(bench: MachineBench) -> None:
    assert durable(bench.replayed()) == durable(bench.machine)
    assert durable(bench.replayed_compacted()) == durable(bench.machine)
