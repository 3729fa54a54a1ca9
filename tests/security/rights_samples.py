"""For each API a request that needs its rights, and which: the table of rights is tested with these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.security.rights_requests import (
    ALTER,
    ALTER_CONFIGS,
    AUTO_TOPIC,
    CLUSTER,
    CLUSTER_ACTION,
    CONSUMERS,
    CREATE,
    DELETABLE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    NEW,
    NEW_GROUP,
    NEW_X,
    NO_PRODUCER,
    READ,
    TOKEN,
    TOPIC,
    TXN,
    USER,
    WRITE,
    G,
    T,
    World,
    X,
    add_partitions,
    added_by_broker,
    commit_in_transaction,
    committed,
    configs,
    consumer_heartbeat,
    described_configs,
    empty_envelope,
    epochs,
    fetched,
    filtered,
    has,
    markers,
    metadata_of,
    move,
    offsets,
    quotas,
    reassign,
    replica,
    topic_deletion,
    transactional_produce,
    wrong_acl,
)
from tests.support.raw_calls import batch_of, produce_request

from barnabas.broker.authorization.rules import Right
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.message import Message
from barnabas.wire.messages import (
    add_offsets_to_txn,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_user_scram_credentials,
    broker_heartbeat,
    consumer_group_describe,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
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
    offset_delete,
    renew_delegation_token,
    sync_group,
    unregister_broker,
    update_features,
)


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
    Sample(0, 9, transactional_produce, (one(WRITE, TXN), one(WRITE, TOPIC))),
    Sample(1, 12, fetched, (one(READ, TOPIC),)),
    Sample(1, 17, fetched, (one(READ, TOPIC),)),
    Sample(1, 17, replica, (one(CLUSTER_ACTION, CLUSTER),)),
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
    Sample(3, 12, lambda w: metadata_of(T), (one(DESCRIBE, TOPIC),)),
    Sample(3, 1, lambda w: metadata_of(None), (one(DESCRIBE, TOPIC),), has("topics", "name", T)),
    Sample(3, 0, lambda w: metadata_of(T), (one(DESCRIBE, TOPIC),)),
    Sample(
        3,
        12,
        lambda w: metadata_of(AUTO_TOPIC, allow_auto_topic_creation=True),
        (one(DESCRIBE, TOPIC), (Right(CREATE, TOPIC), Right(CREATE, CLUSTER))),
        names={TOPIC: AUTO_TOPIC},
    ),
    Sample(8, 9, committed, (one(READ, GROUP), one(READ, TOPIC))),
    Sample(8, 10, committed, (one(READ, GROUP), one(READ, TOPIC))),
    Sample(9, 9, offsets, (one(DESCRIBE, GROUP), one(DESCRIBE, TOPIC))),
    Sample(9, 10, offsets, (one(DESCRIBE, GROUP), one(DESCRIBE, TOPIC))),
    Sample(
        9,
        9,
        lambda w: offsets(w, topics=False),
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
    Sample(
        14,
        5,
        lambda w: sync_group.SyncGroupRequest(group_id=G, protocol_type="consumer", protocol_name="range"),
        (one(READ, GROUP),),
    ),
    Sample(15, 6, lambda w: describe_groups.DescribeGroupsRequest(groups=[G]), (one(DESCRIBE, GROUP),)),
    Sample(
        16,
        5,
        lambda w: list_groups.ListGroupsRequest(),
        ((Right(DESCRIBE, GROUP), Right(DESCRIBE, CLUSTER)),),
        has("groups", "group_id", G),
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
        lambda w: topic_deletion(NEW),
        ((Right(DESCRIBE, TOPIC), Right(DELETE, CLUSTER)),),
        names={TOPIC: NEW},
    ),
    Sample(
        20,
        5,
        lambda w: topic_deletion(DELETABLE),
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
        lambda w: epochs(),
        ((Right(DESCRIBE, TOPIC), Right(CLUSTER_ACTION, CLUSTER)),),
    ),
    Sample(24, 3, add_partitions, (one(WRITE, TXN), one(WRITE, TOPIC))),
    Sample(24, 5, added_by_broker, (one(CLUSTER_ACTION, CLUSTER),)),
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
    Sample(27, 1, markers, ((Right(CLUSTER_ACTION, CLUSTER), Right(ALTER, CLUSTER)),)),
    Sample(28, 4, commit_in_transaction, (one(WRITE, TXN), one(READ, GROUP), one(READ, TOPIC))),
    Sample(29, 3, lambda w: filtered(describe_acls.DescribeAclsRequest), (one(DESCRIBE, CLUSTER),)),
    Sample(
        30,
        3,
        lambda w: wrong_acl(),
        (one(ALTER, CLUSTER),),
    ),
    Sample(
        31,
        3,
        lambda w: delete_acls.DeleteAclsRequest(filters=[filtered(delete_acls.DeleteAclsFilter)]),
        (one(ALTER, CLUSTER),),
    ),
    *(
        Sample(32, 4, lambda w, kind=kind, name=name: described_configs(kind, name), (needed,))  # type: ignore[misc]
        for kind, name, needed in (
            (2, T, one(DESCRIBE_CONFIGS, TOPIC)),
            (32, G, one(DESCRIBE_CONFIGS, GROUP)),
            (4, "", one(DESCRIBE_CONFIGS, CLUSTER)),
            (8, "1", one(DESCRIBE_CONFIGS, CLUSTER)),
        )
    ),
    *(
        Sample(key, 1, lambda w, module=module, kind=kind, name=name: configs(module, kind, name), (needed,))  # type: ignore[misc]
        for key, module in ((33, alter_configs), (44, incremental_alter_configs))
        for kind, name, needed in (
            (2, T, one(ALTER_CONFIGS, TOPIC)),
            (32, G, one(ALTER_CONFIGS, GROUP)),
            (4, "", one(ALTER_CONFIGS, CLUSTER)),
        )
    ),
    Sample(44, 1, lambda w: configs(incremental_alter_configs, 8, "1"), (one(ALTER_CONFIGS, CLUSTER),)),
    Sample(34, 2, move, (one(ALTER, CLUSTER),)),
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
    Sample(45, 1, reassign, (one(ALTER, CLUSTER),)),
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
        lambda w: quotas(),
        (one(ALTER_CONFIGS, CLUSTER),),
    ),
    Sample(
        50,
        0,
        lambda w: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=[describe_user_scram_credentials.UserName(name="x")]
        ),
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
    Sample(58, 0, empty_envelope, (one(CLUSTER_ACTION, CLUSTER),)),
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
        has("transaction_states", "transactional_id", X),
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
        has("topics", "name", T),
    ),
)
