"""For each API a request that needs its rights, and which: the table of rights is tested with these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.raw_calls import Topic, batch_of, produce_request

from barnabas.broker.authorization.rules import Right
from barnabas.broker.forwarding import Sender
from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.message import Message
from barnabas.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    broker_heartbeat,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    envelope,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    renew_delegation_token,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
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


class Sample(NamedTuple):
    """A request. It needs a right of each of `needs`, whichever. `shows` says whether the answer has what is
    left out without the rights; without it a refusal is an error. `names` are those of the resources, where
    they are not the usual ones.

    `also` are rights of the table's row that another sample tests, or that only add something."""

    api_key: int
    version: int
    make: Callable[[World], Message]
    needs: tuple[tuple[Right, ...], ...] = ()
    shows: Callable[[Any], bool] | None = None
    names: dict[ResourceType, str] = {}
    also: tuple[Right, ...] = ()


def one(operation: Operation, kind: ResourceType) -> tuple[Right, ...]:
    return (Right(operation, kind),)


def _fetch(world: World, **fields: Any) -> Message:
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = fetch.FetchTopic(topic=world.topic.name, topic_id=world.topic.id, partitions=[part])
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], **fields)


def _replica(world: World) -> Message:
    state = fetch.ReplicaState(replica_id=world.broker_id, replica_epoch=world.broker_epoch)
    return _fetch(world, replica_state=state)


def _configs(module: Any, kind: int, name: str, **config: Any) -> Message:
    resource = module.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
    return module.REQUEST(resources=[resource], validate_only=True)  # type: ignore[no-any-return]


def _described_configs(kind: int, name: str) -> Message:
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
    return describe_configs.DescribeConfigsRequest(resources=[resource])


def _filter(message: Any) -> Any:
    return message(
        resource_type_filter=1,
        resource_name_filter="no-such-name",
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _commit(world: World, **fields: Any) -> Message:
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = offset_commit.OffsetCommitRequestTopic(
        name=world.topic.name, topic_id=world.topic.id, partitions=[part]
    )
    return offset_commit.OffsetCommitRequest(group_id=G, topics=[topic], **fields)


def _offsets(world: World, topics: bool = True) -> Message:
    topic = offset_fetch.OffsetFetchRequestTopics(
        name=world.topic.name, topic_id=world.topic.id, partition_indexes=[0]
    )
    group = offset_fetch.OffsetFetchRequestGroup(group_id=G, topics=[topic] if topics else None)
    return offset_fetch.OffsetFetchRequest(groups=[group])


def _transactional_produce(world: World) -> Message:
    request = produce_request(world.topic, world.transactional_batch)
    request.transactional_id = X
    return request


def _add_partitions(world: World) -> Message:
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=X,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name=T, partitions=[0])],
    )


def _added_by_broker(world: World) -> Message:
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=T, partitions=[0])
    transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=X, producer_id=NO_PRODUCER, topics=[topic]
    )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction])


def _commit_in_transaction(world: World) -> Message:
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=T, partitions=[part])
    return txn_offset_commit.TxnOffsetCommitRequest(transactional_id=X, group_id=G, topics=[topic])


def _markers(world: World) -> Message:
    topic = write_txn_markers.WritableTxnMarkerTopic(name="no-such-topic", partition_indexes=[0])
    marker = write_txn_markers.WritableTxnMarker(producer_id=1, topics=[topic])
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def _metadata(name: str | None, **fields: Any) -> Message:
    topics = None if name is None else [metadata.MetadataRequestTopic(name=name)]
    return metadata.MetadataRequest(topics=topics, **fields)


def _move(world: World) -> Message:
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=T, partitions=[0])
    directory = alter_replica_log_dirs.AlterReplicaLogDir(path=world.log_dir, topics=[topic])
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[directory])


def _reassign(world: World) -> Message:
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


def _envelope(world: World) -> Message:
    sender = Sender(world.broker_id, world.broker_epoch)
    return envelope.EnvelopeRequest(request_data=b"", request_principal=sender.to_bytes())


def _has(field: str, name: str, value: str) -> Callable[[Any], bool]:
    return lambda response: value in [getattr(each, name) for each in getattr(response, field)]


# Every row of the table has at least one sample.
SAMPLES: tuple[Sample, ...] = (
    Sample(
        0,
        9,
        lambda w: produce_request(w.topic, batch_of(b"v")),
        (one(WRITE, TOPIC),),
        also=one(WRITE, TXN),
    ),
    Sample(0, 13, lambda w: produce_request(w.topic, batch_of(b"v"), acks=1), (one(WRITE, TOPIC),)),
    Sample(0, 9, lambda w: produce_request(w.topic, batch_of(b"v") * 2), (one(WRITE, TOPIC),)),
    Sample(0, 9, _transactional_produce, (one(WRITE, TXN), one(WRITE, TOPIC))),
    Sample(1, 12, _fetch, (one(READ, TOPIC),)),
    Sample(1, 17, _fetch, (one(READ, TOPIC),)),
    Sample(1, 17, _replica, (one(CLUSTER_ACTION, CLUSTER),)),
    Sample(
        2,
        7,
        lambda w: list_offsets.ListOffsetsRequest(
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=T, partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
                )
            ],
        ),
        (one(DESCRIBE, TOPIC),),
    ),
    Sample(3, 12, lambda w: _metadata(T), (one(DESCRIBE, TOPIC),)),
    Sample(3, 1, lambda w: _metadata(None), (one(DESCRIBE, TOPIC),), _has("topics", "name", T)),
    Sample(3, 0, lambda w: _metadata(T), (one(DESCRIBE, TOPIC),)),
    Sample(
        3,
        12,
        lambda w: _metadata(AUTO_TOPIC, allow_auto_topic_creation=True),
        (one(DESCRIBE, TOPIC), (Right(CREATE, TOPIC), Right(CREATE, CLUSTER))),
        names={TOPIC: AUTO_TOPIC},
    ),
    Sample(8, 9, _commit, (one(READ, GROUP), one(READ, TOPIC))),
    Sample(8, 10, _commit, (one(READ, GROUP), one(READ, TOPIC))),
    Sample(9, 9, _offsets, (one(DESCRIBE, GROUP), one(DESCRIBE, TOPIC))),
    Sample(9, 10, _offsets, (one(DESCRIBE, GROUP), one(DESCRIBE, TOPIC))),
    Sample(
        9,
        9,
        lambda w: _offsets(w, topics=False),
        (one(DESCRIBE, GROUP), one(DESCRIBE, TOPIC)),
        lambda response: bool(response.groups[0].topics),
    ),
    Sample(
        10,
        4,
        lambda w: find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[G]),
        (one(DESCRIBE, GROUP),),
    ),
    Sample(
        10,
        4,
        lambda w: find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=[X]),
        (one(DESCRIBE, TXN),),
    ),
    Sample(
        10,
        1,
        lambda w: find_coordinator.FindCoordinatorRequest(coordinator_keys=[G]),
        (one(DESCRIBE, GROUP),),
    ),
    Sample(
        10,
        6,
        lambda w: find_coordinator.FindCoordinatorRequest(key_type=2, coordinator_keys=[G]),
        (one(CLUSTER_ACTION, CLUSTER),),
    ),
    Sample(11, 9, lambda w: join_group.JoinGroupRequest(group_id=G), (one(READ, GROUP),)),
    Sample(11, 5, lambda w: join_group.JoinGroupRequest(group_id=G), (one(READ, GROUP),)),
    Sample(12, 4, lambda w: heartbeat.HeartbeatRequest(group_id=G), (one(READ, GROUP),)),
    Sample(13, 5, lambda w: leave_group.LeaveGroupRequest(group_id=G), (one(READ, GROUP),)),
    Sample(
        13,
        0,
        lambda w: leave_group.LeaveGroupRequest(
            group_id=G, members=[leave_group.MemberIdentity(member_id="nobody")]
        ),
        (one(READ, GROUP),),
    ),
    Sample(14, 5, lambda w: sync_group.SyncGroupRequest(group_id=G), (one(READ, GROUP),)),
    Sample(15, 6, lambda w: describe_groups.DescribeGroupsRequest(groups=[G]), (one(DESCRIBE, GROUP),)),
    Sample(
        16,
        5,
        lambda w: list_groups.ListGroupsRequest(),
        ((Right(DESCRIBE, GROUP), Right(DESCRIBE, CLUSTER)),),
        _has("groups", "group_id", G),
    ),
    Sample(
        19,
        7,
        lambda w: create_topics.CreateTopicsRequest(
            topics=[create_topics.CreatableTopic(name=NEW, num_partitions=1, replication_factor=1)],
            validate_only=True,
        ),
        ((Right(CREATE, TOPIC), Right(CREATE, CLUSTER)), one(DESCRIBE_CONFIGS, TOPIC)),
        names={TOPIC: NEW},
        shows=lambda response: response.topics[0].topic_config_error_code == 0,
    ),
    Sample(
        20,
        6,
        lambda w: delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name=NEW)]),
        ((Right(DESCRIBE, TOPIC), Right(DELETE, CLUSTER)),),
        names={TOPIC: NEW},
    ),
    Sample(
        20,
        5,
        lambda w: delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name=DELETABLE)]),
        ((Right(DELETE, TOPIC), Right(DELETE, CLUSTER)),),
        names={TOPIC: DELETABLE},
    ),
    Sample(
        21,
        2,
        lambda w: delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=T, partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
                )
            ]
        ),
        (one(DELETE, TOPIC),),
    ),
    Sample(
        22,
        4,
        lambda w: init_producer_id.InitProducerIdRequest(transactional_id=None),
        ((Right(IDEMPOTENT_WRITE, CLUSTER), Right(WRITE, TOPIC)),),
    ),
    Sample(
        22,
        4,
        lambda w: init_producer_id.InitProducerIdRequest(transactional_id=NEW_X, transaction_timeout_ms=1000),
        (one(WRITE, TXN),),
        names={TXN: NEW_X},
    ),
    Sample(
        23,
        4,
        lambda w: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=T, partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(partition=0)]
                )
            ]
        ),
        ((Right(DESCRIBE, TOPIC), Right(CLUSTER_ACTION, CLUSTER)),),
    ),
    Sample(24, 3, _add_partitions, (one(WRITE, TXN), one(WRITE, TOPIC))),
    Sample(24, 5, _added_by_broker, (one(CLUSTER_ACTION, CLUSTER),)),
    Sample(
        25,
        4,
        lambda w: add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=X, producer_id=NO_PRODUCER, group_id=G
        ),
        (one(WRITE, TXN), one(READ, GROUP)),
    ),
    Sample(
        26,
        5,
        lambda w: end_txn.EndTxnRequest(transactional_id=X, producer_id=NO_PRODUCER),
        (one(WRITE, TXN),),
    ),
    Sample(27, 1, _markers, ((Right(CLUSTER_ACTION, CLUSTER), Right(ALTER, CLUSTER)),)),
    Sample(28, 4, _commit_in_transaction, (one(WRITE, TXN), one(READ, GROUP), one(READ, TOPIC))),
    Sample(29, 3, lambda w: _filter(describe_acls.DescribeAclsRequest), (one(DESCRIBE, CLUSTER),)),
    Sample(
        30,
        3,
        lambda w: create_acls.CreateAclsRequest(creations=[create_acls.AclCreation(principal="x")]),
        (one(ALTER, CLUSTER),),
    ),
    Sample(
        31,
        3,
        lambda w: delete_acls.DeleteAclsRequest(filters=[_filter(delete_acls.DeleteAclsFilter)]),
        (one(ALTER, CLUSTER),),
    ),
    *(
        Sample(32, 4, lambda w, kind=kind, name=name: _described_configs(kind, name), (needed,))  # type: ignore[misc]
        for kind, name, needed in (
            (2, T, one(DESCRIBE_CONFIGS, TOPIC)),
            (32, G, one(DESCRIBE_CONFIGS, GROUP)),
            (4, "", one(DESCRIBE_CONFIGS, CLUSTER)),
            (8, "1", one(DESCRIBE_CONFIGS, CLUSTER)),
        )
    ),
    *(
        Sample(key, 1, lambda w, module=module, kind=kind, name=name: _configs(module, kind, name), (needed,))  # type: ignore[misc]
        for key, module in ((33, alter_configs), (44, incremental_alter_configs))
        for kind, name, needed in (
            (2, T, one(ALTER_CONFIGS, TOPIC)),
            (32, G, one(ALTER_CONFIGS, GROUP)),
            (4, "", one(ALTER_CONFIGS, CLUSTER)),
        )
    ),
    Sample(44, 1, lambda w: _configs(incremental_alter_configs, 8, "1"), (one(ALTER_CONFIGS, CLUSTER),)),
    Sample(34, 2, _move, (one(ALTER, CLUSTER),)),
    Sample(35, 4, lambda w: describe_log_dirs.DescribeLogDirsRequest(topics=None), (one(DESCRIBE, CLUSTER),)),
    Sample(
        37,
        3,
        lambda w: create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name=T, count=2, assignments=None)],
            validate_only=True,
        ),
        (one(ALTER, TOPIC),),
    ),
    Sample(
        38,
        3,
        lambda w: create_delegation_token.CreateDelegationTokenRequest(),
        also=one(Operation.CREATE_TOKENS, USER),
    ),
    Sample(39, 2, lambda w: renew_delegation_token.RenewDelegationTokenRequest()),
    Sample(40, 2, lambda w: expire_delegation_token.ExpireDelegationTokenRequest()),
    Sample(
        41,
        3,
        lambda w: describe_delegation_token.DescribeDelegationTokenRequest(),
        also=(Right(DESCRIBE, TOKEN), Right(Operation.DESCRIBE_TOKENS, USER)),
    ),
    Sample(
        42,
        2,
        lambda w: delete_groups.DeleteGroupsRequest(groups_names=[NEW_GROUP]),
        (one(DELETE, GROUP),),
        names={GROUP: NEW_GROUP},
    ),
    Sample(
        43,
        2,
        lambda w: elect_leaders.ElectLeadersRequest(
            topic_partitions=[elect_leaders.TopicPartitions(topic=T, partitions=[0])]
        ),
        (one(ALTER, CLUSTER),),
    ),
    Sample(45, 1, _reassign, (one(ALTER, CLUSTER),)),
    Sample(
        46,
        0,
        lambda w: list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
        (one(DESCRIBE, CLUSTER),),
    ),
    Sample(
        47,
        0,
        lambda w: offset_delete.OffsetDeleteRequest(
            group_id=G,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=T, partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=99)]
                )
            ],
        ),
        (one(DELETE, GROUP), one(READ, TOPIC)),
    ),
    Sample(
        48,
        1,
        lambda w: describe_client_quotas.DescribeClientQuotasRequest(),
        (one(DESCRIBE_CONFIGS, CLUSTER),),
    ),
    Sample(
        49,
        1,
        lambda w: alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                alter_client_quotas.RequestEntryData(
                    entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="x")]
                )
            ],
            validate_only=True,
        ),
        (one(ALTER_CONFIGS, CLUSTER),),
    ),
    Sample(
        50,
        0,
        lambda w: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None),
        (one(DESCRIBE, CLUSTER),),
    ),
    Sample(
        51,
        0,
        lambda w: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[alter_user_scram_credentials.ScramCredentialDeletion(name="x", mechanism=1)]
        ),
        (one(ALTER, CLUSTER),),
    ),
    Sample(56, 3, lambda w: alter_partition.AlterPartitionRequest(), (one(CLUSTER_ACTION, CLUSTER),)),
    Sample(57, 1, lambda w: update_features.UpdateFeaturesRequest(), (one(ALTER, CLUSTER),)),
    Sample(58, 0, _envelope, (one(CLUSTER_ACTION, CLUSTER),)),
    Sample(60, 1, lambda w: describe_cluster.DescribeClusterRequest()),
    Sample(
        61,
        0,
        lambda w: describe_producers.DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name=T, partition_indexes=[0])]
        ),
        (one(READ, TOPIC),),
    ),
    Sample(63, 1, lambda w: broker_heartbeat.BrokerHeartbeatRequest(), (one(CLUSTER_ACTION, CLUSTER),)),
    Sample(64, 0, lambda w: unregister_broker.UnregisterBrokerRequest(broker_id=99), (one(ALTER, CLUSTER),)),
    Sample(
        65,
        0,
        lambda w: describe_transactions.DescribeTransactionsRequest(transactional_ids=[X]),
        (one(DESCRIBE, TXN), one(DESCRIBE, TOPIC)),
        lambda response: bool(response.transaction_states[0].topics),
    ),
    Sample(
        66,
        1,
        lambda w: list_transactions.ListTransactionsRequest(),
        (one(DESCRIBE, TXN),),
        _has("transaction_states", "transactional_id", X),
    ),
    Sample(
        67, 0, lambda w: allocate_producer_ids.AllocateProducerIdsRequest(), (one(CLUSTER_ACTION, CLUSTER),)
    ),
    Sample(
        68,
        1,
        lambda w: consumer_heartbeat("new-heartbeats", "member"),
        (one(READ, GROUP), one(DESCRIBE, TOPIC)),
        names={GROUP: "new-heartbeats"},
    ),
    Sample(
        69,
        1,
        lambda w: consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[CONSUMERS]),
        (one(DESCRIBE, GROUP), one(DESCRIBE, TOPIC)),
        names={GROUP: CONSUMERS},
    ),
    Sample(
        74, 1, lambda w: list_config_resources.ListConfigResourcesRequest(), (one(DESCRIBE_CONFIGS, CLUSTER),)
    ),
    Sample(
        75,
        0,
        lambda w: describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=T)]
        ),
        (one(DESCRIBE, TOPIC),),
    ),
    Sample(
        75,
        0,
        lambda w: describe_topic_partitions.DescribeTopicPartitionsRequest(),
        (one(DESCRIBE, TOPIC),),
        _has("topics", "name", T),
    ),
)
