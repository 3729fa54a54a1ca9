"""The calls of a consumer group over a raw connection: one group, any version, without automatic steps."""

from typing import Any

from tests.support.raw_calls import Topic
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.wire.messages import (
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
JOIN_TIMEOUT_MS = 10_000
# A valid subscription to no topics: Apache Kafka parses it and never answers if it is malformed.
SUBSCRIPTION = b"\0\0" + bytes(4) + b"\0\0\0\x03own"


class RawGroup:
    """`client` must be connected to the coordinator; a member that waits needs a connection of its own."""

    def __init__(self, client: RawClient, name: str) -> None:
        self.client = client
        self.name = name

    def find(self) -> None:
        """Ask for the coordinator until there is one, which creates the internal topic."""
        request = find_coordinator.FindCoordinatorRequest(coordinator_keys=[self.name])
        while True:
            (answer,) = self.client.call(FIND_COORDINATOR, 6, request).coordinators
            if answer.error_code == 0 and self.fetched_code() == 0:
                return

    def fetched_code(self) -> int:
        """0 once the coordinator has loaded the group."""
        requested = offset_fetch.OffsetFetchRequestGroup(group_id=self.name, topics=None)
        request = offset_fetch.OffsetFetchRequest(groups=[requested])
        (group,) = self.client.call(OFFSET_FETCH, 8, request).groups
        return int(group.error_code)

    def join_request(
        self, member: str = "", protocols: tuple[str, ...] = ("range",), instance: str | None = None
    ) -> join_group.JoinGroupRequest:
        return join_group.JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=JOIN_TIMEOUT_MS,
            rebalance_timeout_ms=JOIN_TIMEOUT_MS,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[
                join_group.JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION) for name in protocols
            ],
        )

    def join(self, member: str = "", version: int = 9, instance: str | None = None) -> Any:
        return self.client.call(JOIN_GROUP, version, self.join_request(member, instance=instance))

    def joined(self, version: int = 9, instance: str | None = None) -> Any:
        """Join as a client does: in two steps, with the given member id, if the version requires it."""
        answer = self.join("", version, instance)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self.join(answer.member_id, version, instance)
        return answer

    def sync(self, joined: Any, assignments: dict[str, bytes] | None = None, version: int = 5) -> Any:
        request = sync_group.SyncGroupRequest(
            group_id=self.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[
                sync_group.SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in (assignments or {}).items()
            ],
        )
        return self.client.call(SYNC_GROUP, version, request)

    def heartbeat(self, joined: Any, version: int = 4, instance: str | None = None) -> int:
        request = heartbeat.HeartbeatRequest(
            group_id=self.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
        )
        return int(self.client.call(HEARTBEAT, version, request).error_code)

    def leave(self, *members: str, version: int = 5) -> Any:
        identities = [leave_group.MemberIdentity(member_id=member) for member in members]
        request = leave_group.LeaveGroupRequest(
            group_id=self.name, member_id=members[0] if members else "", members=identities
        )
        return self.client.call(LEAVE_GROUP, version, request)

    def commit(
        self, topic: Topic, offset: int, metadata: str | None = "", version: int = 8, **member: Any
    ) -> int:
        """`member` is generation_id_or_member_epoch and member_id; without them, a commit from outside."""
        partition = offset_commit.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata, committed_leader_epoch=0
        )
        named = offset_commit.OffsetCommitRequestTopic(
            name=topic.name, topic_id=topic.id, partitions=[partition]
        )
        request = offset_commit.OffsetCommitRequest(group_id=self.name, topics=[named], **member)
        response = self.client.call(OFFSET_COMMIT, version, request)
        return int(response.topics[0].partitions[0].error_code)

    def fetch(self, topic: Topic, version: int = 8, require_stable: bool = False) -> Any:
        """The answer for partition 0 of the topic."""
        requested = offset_fetch.OffsetFetchRequestTopics(
            name=topic.name, topic_id=topic.id, partition_indexes=[0]
        )
        old = offset_fetch.OffsetFetchRequestTopic(name=topic.name, partition_indexes=[0])
        request = offset_fetch.OffsetFetchRequest(
            group_id=self.name,
            topics=[old],
            groups=[offset_fetch.OffsetFetchRequestGroup(group_id=self.name, topics=[requested])],
            require_stable=require_stable,
        )
        response = self.client.call(OFFSET_FETCH, version, request)
        (answered,) = response.groups[0].topics if response.groups else response.topics
        return answered.partitions[0]

    def committed(self, topic: Topic, *, require_stable: bool = False) -> tuple[int, int]:
        """(error, offset) of partition 0; the error is that of the group if it has one."""
        requested = offset_fetch.OffsetFetchRequestTopics(name=topic.name, partition_indexes=[0])
        group = offset_fetch.OffsetFetchRequestGroup(group_id=self.name, topics=[requested])
        request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=require_stable)
        (answer,) = self.client.call(OFFSET_FETCH, 8, request).groups
        if answer.error_code:
            return int(answer.error_code), -1
        partition = answer.topics[0].partitions[0]
        return int(partition.error_code), int(partition.committed_offset)
