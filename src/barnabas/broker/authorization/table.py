"""The table of rights: for each API what it needs, where in the request the names are, and what a refusal
looks like. The rules are those of Kafka's brokers and controllers."""

from __future__ import annotations

from typing import Any

from barnabas.broker.authorization import groups, refusals, topics, transactions
from barnabas.broker.authorization.rules import (
    AtTheGate,
    Both,
    Each,
    Elements,
    LeftOut,
    NoRight,
    Own,
    Right,
    Rule,
    Whole,
)
from barnabas.broker.authorization.topics import name_by_id
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages import (
    add_offsets_to_txn,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    broker_heartbeat,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    delete_groups,
    delete_records,
    describe_acls,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    envelope,
    heartbeat,
    incremental_alter_configs,
    leave_group,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    offset_commit,
    offset_delete,
    offset_for_leader_epoch,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
)

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE = Operation.READ, Operation.WRITE, Operation.CREATE
DELETE, ALTER, DESCRIBE = Operation.DELETE, Operation.ALTER, Operation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
CLUSTER_ACTION = Operation.CLUSTER_ACTION


def _configs(operation: Operation, elements: Elements) -> Rule:
    rights = (Right(operation, kind) for kind in (TOPIC, GROUP, CLUSTER))
    return Own(topics.configs(operation, elements), *rights)


def _refused_config(kind: Any, resource: Any, code: ErrorCode) -> Any:
    return kind(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=code,
        error_message=code.text,
    )


def _refused_producers(topic: Any, code: ErrorCode) -> Work[Any]:
    answer = describe_producers.TopicResponse(name=topic.name)
    for index in topic.partition_indexes:
        answer.partitions.append(
            describe_producers.PartitionResponse(
                partition_index=index, error_code=code, error_message=code.text
            )
        )
        yield
    return answer


_LIST_OFFSETS = Elements(
    "topics",
    "name",
    list_offsets.ListOffsetsResponse,
    "topics",
    refusals.by_partition(list_offsets.ListOffsetsTopicResponse, list_offsets.ListOffsetsPartitionResponse),
)
_COMMITTED = Elements("topics", name_by_id, offset_commit.OffsetCommitResponse, "topics", refusals.COMMITTED)
_DESCRIBED_GROUPS = Elements(
    "groups",
    None,
    describe_groups.DescribeGroupsResponse,
    "groups",
    lambda group, code: describe_groups.DescribedGroup(group_id=group, error_code=code),
)
_DELETED_RECORDS = Elements(
    "topics",
    "name",
    delete_records.DeleteRecordsResponse,
    "topics",
    refusals.by_partition(
        delete_records.DeleteRecordsTopicResult,
        delete_records.DeleteRecordsPartitionResult,
        low_watermark=-1,
    ),
)
_EPOCHS = Elements(
    "topics",
    "topic",
    offset_for_leader_epoch.OffsetForLeaderEpochResponse,
    "topics",
    refusals.by_partition(
        offset_for_leader_epoch.OffsetForLeaderTopicResult,
        offset_for_leader_epoch.EpochEndOffset,
        names=("topic",),
        index="partition",
    ),
)
_COMMITTED_IN_TRANSACTION = Elements(
    "topics",
    "name",
    txn_offset_commit.TxnOffsetCommitResponse,
    "topics",
    refusals.COMMITTED_IN_TRANSACTION,
)
_DESCRIBED_CONFIGS = Elements(
    "resources",
    "resource_name",
    describe_configs.DescribeConfigsResponse,
    "results",
    lambda resource, code: _refused_config(describe_configs.DescribeConfigsResult, resource, code),
)
_REPLACED_CONFIGS = Elements(
    "resources",
    "resource_name",
    alter_configs.AlterConfigsResponse,
    "responses",
    lambda resource, code: _refused_config(alter_configs.AlterConfigsResourceResponse, resource, code),
)
_ALTERED_CONFIGS = Elements(
    "resources",
    "resource_name",
    incremental_alter_configs.IncrementalAlterConfigsResponse,
    "responses",
    lambda resource, code: _refused_config(
        incremental_alter_configs.AlterConfigsResourceResponse, resource, code
    ),
)
_NEW_PARTITIONS = Elements(
    "topics",
    "name",
    create_partitions.CreatePartitionsResponse,
    "results",
    lambda topic, code: create_partitions.CreatePartitionsTopicResult(
        name=topic.name, error_code=code, error_message=None
    ),
)
_DELETED_GROUPS = Elements(
    "groups_names",
    None,
    delete_groups.DeleteGroupsResponse,
    "results",
    lambda group, code: delete_groups.DeletableGroupResult(group_id=group, error_code=code),
)
_DELETED_OFFSETS = Elements(
    "topics",
    "name",
    offset_delete.OffsetDeleteResponse,
    "topics",
    refusals.by_partition(
        offset_delete.OffsetDeleteResponseTopic, offset_delete.OffsetDeleteResponsePartition
    ),
)
_PRODUCERS = Elements(
    "topics", "name", describe_producers.DescribeProducersResponse, "topics", _refused_producers
)
_TRANSACTIONS = Elements(
    "transactional_ids",
    None,
    describe_transactions.DescribeTransactionsResponse,
    "transaction_states",
    lambda name, code: describe_transactions.TransactionState(transactional_id=name, error_code=code),
)
_CONSUMER_GROUPS = Elements(
    "group_ids",
    None,
    consumer_group_describe.ConsumerGroupDescribeResponse,
    "groups",
    lambda group, code: consumer_group_describe.DescribedGroup(
        group_id=group, error_code=code, error_message=code.text
    ),
)


def _of_group(operation: Operation, refuse: Any) -> Whole:
    return Whole(operation, GROUP, refuse, field="group_id")


def _of_transaction(refuse: Any) -> Whole:
    return Whole(WRITE, TRANSACTIONAL_ID, refuse, field="transactional_id")


RIGHTS: dict[int, Rule] = {
    # Produce
    0: Both(
        Own(transactions.produce, transactions.WRITE_ID),
        AtTheGate(Right(WRITE, TOPIC)),
    ),
    # Fetch: of a client, of a replica
    1: AtTheGate(Right(READ, TOPIC), Right(CLUSTER_ACTION, CLUSTER)),
    # ListOffsets
    2: Each(DESCRIBE, TOPIC, _LIST_OFFSETS),
    # Metadata
    3: Own(topics.metadata, topics.DESCRIBE, topics.CREATE, topics.CREATE_ANY),
    # OffsetCommit
    8: Both(_of_group(READ, refusals.of_commit), Each(READ, TOPIC, _COMMITTED)),
    # OffsetFetch
    9: Own(groups.offset_fetch, groups.DESCRIBE_GROUP, groups.DESCRIBE_TOPIC),
    # FindCoordinator
    10: Own(
        groups.find_coordinator,
        groups.DESCRIBE_GROUP,
        Right(DESCRIBE, TRANSACTIONAL_ID),
        groups.CLUSTER_ACTION,
    ),
    # JoinGroup, Heartbeat, LeaveGroup, SyncGroup
    11: _of_group(READ, refusals.of_join),
    12: _of_group(READ, refusals.whole(heartbeat.HeartbeatResponse)),
    13: _of_group(READ, refusals.whole(leave_group.LeaveGroupResponse)),
    14: _of_group(READ, refusals.whole(sync_group.SyncGroupResponse)),
    # DescribeGroups, ListGroups
    15: Each(DESCRIBE, GROUP, _DESCRIBED_GROUPS),
    16: LeftOut(Right(DESCRIBE, GROUP), "groups", "group_id", instead=Right(DESCRIBE, CLUSTER)),
    # SaslHandshake, ApiVersions
    17: NoRight(),
    18: NoRight(),
    # CreateTopics, DeleteTopics, DeleteRecords
    19: Own(topics.create_topics, topics.CREATE, topics.CREATE_ANY, topics.DESCRIBE_CONFIGS),
    20: Own(topics.delete_topics, topics.DELETE, topics.DESCRIBE, topics.DELETE_ANY),
    21: Each(DELETE, TOPIC, _DELETED_RECORDS),
    # InitProducerId
    22: Own(
        transactions.init_producer_id,
        transactions.WRITE_ID,
        transactions.IDEMPOTENT_WRITE,
        transactions.WRITE_TOPIC,
    ),
    # OffsetForLeaderEpoch
    23: Each(DESCRIBE, TOPIC, _EPOCHS, instead=Right(CLUSTER_ACTION, CLUSTER)),
    # AddPartitionsToTxn
    24: Own(
        transactions.add_partitions,
        transactions.WRITE_ID,
        transactions.WRITE_TOPIC,
        transactions.CLUSTER_ACTION,
    ),
    # AddOffsetsToTxn, EndTxn
    25: Both(
        _of_transaction(refusals.whole(add_offsets_to_txn.AddOffsetsToTxnResponse)),
        _of_group(READ, refusals.whole(add_offsets_to_txn.AddOffsetsToTxnResponse)),
    ),
    26: _of_transaction(refusals.whole(end_txn.EndTxnResponse)),
    # WriteTxnMarkers
    27: Whole(CLUSTER_ACTION, CLUSTER, refusals.of_markers, instead=ALTER),
    # TxnOffsetCommit
    28: Both(
        _of_transaction(refusals.of_commit_in_transaction),
        _of_group(READ, refusals.of_commit_in_transaction),
        Each(READ, TOPIC, _COMMITTED_IN_TRANSACTION),
    ),
    # DescribeAcls, CreateAcls, DeleteAcls
    29: Whole(DESCRIBE, CLUSTER, refusals.whole(describe_acls.DescribeAclsResponse)),
    30: Whole(ALTER, CLUSTER, refusals.of_create_acls),
    31: Whole(ALTER, CLUSTER, refusals.of_delete_acls),
    # DescribeConfigs, AlterConfigs
    32: _configs(DESCRIBE_CONFIGS, _DESCRIBED_CONFIGS),
    33: _configs(ALTER_CONFIGS, _REPLACED_CONFIGS),
    # AlterReplicaLogDirs, DescribeLogDirs
    34: Whole(ALTER, CLUSTER, refusals.of_moved_replicas),
    35: Whole(DESCRIBE, CLUSTER, refusals.whole(describe_log_dirs.DescribeLogDirsResponse)),
    # SaslAuthenticate
    36: NoRight(),
    # CreatePartitions
    37: Each(ALTER, TOPIC, _NEW_PARTITIONS),
    # CreateDelegationToken; RenewDelegationToken and ExpireDelegationToken are for owner and renewers
    38: Own(transactions.create_token, transactions.CREATE_TOKENS),
    39: NoRight(),
    40: NoRight(),
    # DescribeDelegationToken
    41: Own(transactions.described_tokens, transactions.DESCRIBE_TOKEN, transactions.DESCRIBE_TOKENS),
    # DeleteGroups
    42: Each(DELETE, GROUP, _DELETED_GROUPS),
    # ElectLeaders
    43: Whole(ALTER, CLUSTER, refusals.of_elections),
    # IncrementalAlterConfigs
    44: _configs(ALTER_CONFIGS, _ALTERED_CONFIGS),
    # AlterPartitionReassignments, ListPartitionReassignments
    45: Whole(ALTER, CLUSTER, refusals.of_reassignments),
    46: Whole(
        DESCRIBE, CLUSTER, refusals.whole(list_partition_reassignments.ListPartitionReassignmentsResponse)
    ),
    # OffsetDelete
    47: Both(
        _of_group(DELETE, refusals.whole(offset_delete.OffsetDeleteResponse)),
        Each(READ, TOPIC, _DELETED_OFFSETS),
    ),
    # DescribeClientQuotas, AlterClientQuotas
    48: Whole(DESCRIBE_CONFIGS, CLUSTER, refusals.of_quotas),
    49: Whole(ALTER_CONFIGS, CLUSTER, refusals.of_changed_quotas),
    # DescribeUserScramCredentials, AlterUserScramCredentials
    50: Whole(
        DESCRIBE,
        CLUSTER,
        refusals.whole(describe_user_scram_credentials.DescribeUserScramCredentialsResponse),
    ),
    51: Whole(ALTER, CLUSTER, refusals.of_changed_credentials),
    # AlterPartition
    56: Whole(CLUSTER_ACTION, CLUSTER, refusals.whole(alter_partition.AlterPartitionResponse)),
    # UpdateFeatures
    57: Whole(ALTER, CLUSTER, refusals.whole(update_features.UpdateFeaturesResponse)),
    # Envelope
    58: Whole(CLUSTER_ACTION, CLUSTER, refusals.whole(envelope.EnvelopeResponse)),
    # DescribeCluster
    60: NoRight(),
    # DescribeProducers
    61: Each(READ, TOPIC, _PRODUCERS),
    # BrokerHeartbeat
    63: Whole(CLUSTER_ACTION, CLUSTER, refusals.whole(broker_heartbeat.BrokerHeartbeatResponse)),
    # UnregisterBroker
    64: Whole(ALTER, CLUSTER, refusals.whole(unregister_broker.UnregisterBrokerResponse)),
    # DescribeTransactions, ListTransactions
    65: Both(
        Each(DESCRIBE, TRANSACTIONAL_ID, _TRANSACTIONS),
        Own(transactions.described_topics, transactions.DESCRIBE_TOPIC),
    ),
    66: LeftOut(Right(DESCRIBE, TRANSACTIONAL_ID), "transaction_states", "transactional_id"),
    # AllocateProducerIds
    67: Whole(CLUSTER_ACTION, CLUSTER, refusals.whole(allocate_producer_ids.AllocateProducerIdsResponse)),
    # ConsumerGroupHeartbeat, ConsumerGroupDescribe
    68: Both(
        _of_group(READ, refusals.whole(consumer_group_heartbeat.ConsumerGroupHeartbeatResponse)),
        Own(groups.subscribed_topics, groups.DESCRIBE_TOPIC),
    ),
    69: Both(
        Each(DESCRIBE, GROUP, _CONSUMER_GROUPS),
        Own(groups.assigned_topics, groups.DESCRIBE_TOPIC),
    ),
    # ListConfigResources
    74: Whole(DESCRIBE_CONFIGS, CLUSTER, refusals.whole(list_config_resources.ListConfigResourcesResponse)),
    # DescribeTopicPartitions
    75: Own(topics.describe_topic_partitions, topics.DESCRIBE),
}
