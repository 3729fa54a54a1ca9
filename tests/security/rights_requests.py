"""The requests with which the table of rights is tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.raw_calls import Topic, produce_request

from barnabas.broker.forwarding import Sender
from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.message import Message
from barnabas.wire.messages import (
    add_partitions_to_txn,
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    consumer_group_heartbeat,
    create_acls,
    delete_topics,
    describe_configs,
    envelope,
    fetch,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    txn_offset_commit,
    write_txn_markers,
)

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TXN, USER, TOKEN = ResourceType.TRANSACTIONAL_ID, ResourceType.USER, ResourceType.DELEGATION_TOKEN
READ, WRITE, CREATE = Operation.READ, Operation.WRITE, Operation.CREATE
DELETE, ALTER, DESCRIBE = Operation.DELETE, Operation.ALTER, Operation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE

# The names of what the test has prepared: a topic; another, to be deleted; a group with offsets; a group of
# the new protocol, whose member has the topic; an open transaction with the topic.
T, DELETABLE, G, CONSUMERS, X = "orders", "deletable", "group", "consumers", "txn"
# Names that nothing has at first.
AUTO_TOPIC, NEW, NEW_GROUP, NEW_X = "auto-topic", "new-topic", "new-group", "new-txn"
# A producer that the transaction does not have.
NO_PRODUCER = 99_999
NAMES = {TOPIC: T, GROUP: G, CLUSTER: CLUSTER_NAME, TXN: X, USER: "User:owner", TOKEN: "token"}


class World(NamedTuple):
    """What samples need to know about the broker."""

    topic: Topic
    broker_id: int
    broker_epoch: int
    log_dir: str
    transactional_batch: bytes


def fetched(world: World, **fields: Any) -> Message:
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = fetch.FetchTopic(topic=world.topic.name, topic_id=world.topic.id, partitions=[part])
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], **fields)


def replica(world: World) -> Message:
    state = fetch.ReplicaState(replica_id=world.broker_id, replica_epoch=world.broker_epoch)
    return fetched(world, replica_state=state)


def configs(module: Any, kind: int, name: str, **config: Any) -> Message:
    resource = module.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
    return module.REQUEST(resources=[resource], validate_only=True)  # type: ignore[no-any-return]


def described_configs(kind: int, name: str) -> Message:
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
    return describe_configs.DescribeConfigsRequest(resources=[resource])


def filtered(message: Any) -> Any:
    return message(
        resource_type_filter=1,
        resource_name_filter="no-such-name",
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def committed(world: World, **fields: Any) -> Message:
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = offset_commit.OffsetCommitRequestTopic(
        name=world.topic.name, topic_id=world.topic.id, partitions=[part]
    )
    return offset_commit.OffsetCommitRequest(group_id=G, topics=[topic], **fields)


def offsets(world: World, topics: bool = True) -> Message:
    topic = offset_fetch.OffsetFetchRequestTopics(
        name=world.topic.name, topic_id=world.topic.id, partition_indexes=[0]
    )
    group = offset_fetch.OffsetFetchRequestGroup(group_id=G, topics=[topic] if topics else None)
    return offset_fetch.OffsetFetchRequest(groups=[group])


def transactional_produce(world: World) -> Message:
    request = produce_request(world.topic, world.transactional_batch)
    request.transactional_id = X
    return request


def add_partitions(world: World) -> Message:
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=X,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name=T, partitions=[0])],
    )


def added_by_broker(world: World) -> Message:
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=T, partitions=[0])
    transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=X, producer_id=NO_PRODUCER, topics=[topic]
    )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction])


def commit_in_transaction(world: World) -> Message:
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=T, partitions=[part])
    return txn_offset_commit.TxnOffsetCommitRequest(transactional_id=X, group_id=G, topics=[topic])


def markers(world: World) -> Message:
    topic = write_txn_markers.WritableTxnMarkerTopic(name="no-such-topic", partition_indexes=[0])
    marker = write_txn_markers.WritableTxnMarker(producer_id=1, topics=[topic])
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def metadata_of(name: str | None, **fields: Any) -> Message:
    topics = None if name is None else [metadata.MetadataRequestTopic(name=name)]
    return metadata.MetadataRequest(topics=topics, **fields)


def move(world: World) -> Message:
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=T, partitions=[0])
    directory = alter_replica_log_dirs.AlterReplicaLogDir(path=world.log_dir, topics=[topic])
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory])


def reassign(world: World) -> Message:
    part = alter_partition_reassignments.ReassignablePartition(partition_index=99, replicas=None)
    topic = alter_partition_reassignments.ReassignableTopic(name=T, partitions=[part])
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[topic])


def consumer_heartbeat(group: str, member: str) -> Message:
    """A new member of the new protocol joins."""
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[T],
        topic_partitions=[],
    )


def empty_envelope(world: World) -> Message:
    sender = Sender(world.broker_id, world.broker_epoch)
    return envelope.EnvelopeRequest(request_data=b"", request_principal=sender.to_bytes())


def has(field: str, name: str, value: str) -> Callable[[Any], bool]:
    return lambda response: value in [getattr(each, name) for each in getattr(response, field)]


def topic_deletion(name: str) -> Message:
    return delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name=name)], timeout_ms=9000
    )


def wrong_acl() -> Message:
    """Its principal has no type: it is refused, but not for lack of a right."""
    values = {"resource_name": "x", "principal": "x", "host": "*"}
    acl = create_acls.AclCreation(resource_type=2, operation=3, permission_type=3, **values)
    return create_acls.CreateAclsRequest(creations=[acl])


def epochs() -> Message:
    part = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0)
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=T, partitions=[part])
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[topic])


def quotas() -> Message:
    entity = alter_client_quotas.EntityData(entity_type="user", entity_name="x")
    entry = alter_client_quotas.RequestEntryData(entity=[entity])
    return alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)
