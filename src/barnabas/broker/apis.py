"""The APIs this broker serves, one row each: key, name, versions, handler."""

from barnabas.broker.call import Api
from barnabas.broker.handlers.add_offsets_to_txn import add_offsets_to_txn
from barnabas.broker.handlers.add_partitions_to_txn import add_partitions_to_txn
from barnabas.broker.handlers.allocate_producer_ids import allocate_producer_ids
from barnabas.broker.handlers.alter_client_quotas import alter_client_quotas
from barnabas.broker.handlers.alter_configs import alter_configs
from barnabas.broker.handlers.alter_partition import alter_partition
from barnabas.broker.handlers.alter_partition_reassignments import alter_partition_reassignments
from barnabas.broker.handlers.alter_replica_log_dirs import alter_replica_log_dirs
from barnabas.broker.handlers.alter_user_scram_credentials import alter_user_scram_credentials
from barnabas.broker.handlers.api_versions import api_versions
from barnabas.broker.handlers.broker_heartbeat import broker_heartbeat
from barnabas.broker.handlers.consumer_group_describe import consumer_group_describe
from barnabas.broker.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from barnabas.broker.handlers.create_acls import create_acls
from barnabas.broker.handlers.create_delegation_token import create_delegation_token
from barnabas.broker.handlers.create_partitions import create_partitions
from barnabas.broker.handlers.create_topics import create_topics
from barnabas.broker.handlers.delete_acls import delete_acls
from barnabas.broker.handlers.delete_groups import delete_groups
from barnabas.broker.handlers.delete_records import delete_records
from barnabas.broker.handlers.delete_topics import delete_topics
from barnabas.broker.handlers.describe_acls import describe_acls
from barnabas.broker.handlers.describe_client_quotas import describe_client_quotas
from barnabas.broker.handlers.describe_cluster import describe_cluster
from barnabas.broker.handlers.describe_configs import describe_configs
from barnabas.broker.handlers.describe_delegation_token import describe_delegation_token
from barnabas.broker.handlers.describe_groups import describe_groups
from barnabas.broker.handlers.describe_log_dirs import describe_log_dirs
from barnabas.broker.handlers.describe_producers import describe_producers
from barnabas.broker.handlers.describe_topic_partitions import describe_topic_partitions
from barnabas.broker.handlers.describe_transactions import describe_transactions
from barnabas.broker.handlers.describe_user_scram_credentials import describe_user_scram_credentials
from barnabas.broker.handlers.elect_leaders import elect_leaders
from barnabas.broker.handlers.end_txn import end_txn
from barnabas.broker.handlers.envelope import envelope
from barnabas.broker.handlers.expire_delegation_token import expire_delegation_token
from barnabas.broker.handlers.fetch import fetch
from barnabas.broker.handlers.find_coordinator import find_coordinator
from barnabas.broker.handlers.heartbeat import heartbeat
from barnabas.broker.handlers.incremental_alter_configs import incremental_alter_configs
from barnabas.broker.handlers.init_producer_id import init_producer_id
from barnabas.broker.handlers.join_group import join_group
from barnabas.broker.handlers.leave_group import leave_group
from barnabas.broker.handlers.list_config_resources import list_config_resources
from barnabas.broker.handlers.list_groups import list_groups
from barnabas.broker.handlers.list_offsets import list_offsets
from barnabas.broker.handlers.list_partition_reassignments import list_partition_reassignments
from barnabas.broker.handlers.list_transactions import list_transactions
from barnabas.broker.handlers.metadata import metadata
from barnabas.broker.handlers.offset_commit import offset_commit
from barnabas.broker.handlers.offset_delete import offset_delete
from barnabas.broker.handlers.offset_fetch import offset_fetch
from barnabas.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from barnabas.broker.handlers.produce import produce
from barnabas.broker.handlers.renew_delegation_token import renew_delegation_token
from barnabas.broker.handlers.sasl_authenticate import sasl_authenticate
from barnabas.broker.handlers.sasl_handshake import sasl_handshake
from barnabas.broker.handlers.sync_group import sync_group
from barnabas.broker.handlers.txn_offset_commit import txn_offset_commit
from barnabas.broker.handlers.unregister_broker import unregister_broker
from barnabas.broker.handlers.update_features import update_features
from barnabas.broker.handlers.write_txn_markers import write_txn_markers

_ROWS = (
    # Old librdkafka compresses only where Produce 0 is offered.
    Api(0, "Produce", (3, 13), produce, advertised_from=0),
    Api(1, "Fetch", (4, 18), fetch),
    Api(2, "ListOffsets", (1, 11), list_offsets),
    Api(3, "Metadata", (0, 13), metadata),
    Api(8, "OffsetCommit", (2, 10), offset_commit),
    Api(9, "OffsetFetch", (1, 10), offset_fetch),
    Api(10, "FindCoordinator", (0, 6), find_coordinator),
    Api(11, "JoinGroup", (0, 9), join_group),
    Api(12, "Heartbeat", (0, 4), heartbeat),
    Api(13, "LeaveGroup", (0, 5), leave_group),
    Api(14, "SyncGroup", (0, 5), sync_group),
    Api(15, "DescribeGroups", (0, 6), describe_groups),
    Api(16, "ListGroups", (0, 5), list_groups),
    Api(17, "SaslHandshake", (0, 1), sasl_handshake),
    Api(18, "ApiVersions", (0, 4), api_versions, before_authentication=True),
    Api(19, "CreateTopics", (2, 7), create_topics),
    Api(20, "DeleteTopics", (1, 6), delete_topics),
    Api(21, "DeleteRecords", (0, 2), delete_records),
    Api(22, "InitProducerId", (0, 5), init_producer_id),
    Api(23, "OffsetForLeaderEpoch", (2, 4), offset_for_leader_epoch),
    Api(24, "AddPartitionsToTxn", (0, 5), add_partitions_to_txn),
    Api(25, "AddOffsetsToTxn", (0, 4), add_offsets_to_txn),
    Api(26, "EndTxn", (0, 5), end_txn),
    Api(27, "WriteTxnMarkers", (1, 2), write_txn_markers),
    Api(28, "TxnOffsetCommit", (0, 5), txn_offset_commit),
    Api(29, "DescribeAcls", (1, 3), describe_acls),
    Api(30, "CreateAcls", (1, 3), create_acls),
    Api(31, "DeleteAcls", (1, 3), delete_acls),
    Api(32, "DescribeConfigs", (1, 4), describe_configs),
    Api(33, "AlterConfigs", (0, 2), alter_configs),
    Api(34, "AlterReplicaLogDirs", (1, 2), alter_replica_log_dirs),
    Api(35, "DescribeLogDirs", (1, 5), describe_log_dirs),
    Api(36, "SaslAuthenticate", (0, 2), sasl_authenticate),
    Api(37, "CreatePartitions", (0, 3), create_partitions),
    Api(38, "CreateDelegationToken", (1, 3), create_delegation_token),
    Api(39, "RenewDelegationToken", (1, 2), renew_delegation_token),
    Api(40, "ExpireDelegationToken", (1, 2), expire_delegation_token),
    Api(41, "DescribeDelegationToken", (1, 3), describe_delegation_token),
    Api(42, "DeleteGroups", (0, 2), delete_groups),
    Api(43, "ElectLeaders", (0, 2), elect_leaders),
    Api(44, "IncrementalAlterConfigs", (0, 1), incremental_alter_configs),
    Api(45, "AlterPartitionReassignments", (0, 1), alter_partition_reassignments),
    Api(46, "ListPartitionReassignments", (0, 0), list_partition_reassignments),
    Api(47, "OffsetDelete", (0, 0), offset_delete),
    Api(48, "DescribeClientQuotas", (0, 1), describe_client_quotas),
    Api(49, "AlterClientQuotas", (0, 1), alter_client_quotas),
    Api(50, "DescribeUserScramCredentials", (0, 0), describe_user_scram_credentials),
    Api(51, "AlterUserScramCredentials", (0, 0), alter_user_scram_credentials),
    Api(56, "AlterPartition", (2, 3), alter_partition, between_brokers=True),
    Api(57, "UpdateFeatures", (0, 2), update_features),
    Api(58, "Envelope", (0, 0), envelope, between_brokers=True),
    Api(60, "DescribeCluster", (0, 2), describe_cluster),
    Api(61, "DescribeProducers", (0, 0), describe_producers),
    Api(63, "BrokerHeartbeat", (0, 2), broker_heartbeat, between_brokers=True),
    Api(64, "UnregisterBroker", (0, 0), unregister_broker),
    Api(65, "DescribeTransactions", (0, 0), describe_transactions),
    Api(66, "ListTransactions", (0, 2), list_transactions),
    Api(67, "AllocateProducerIds", (0, 0), allocate_producer_ids, between_brokers=True),
    Api(68, "ConsumerGroupHeartbeat", (0, 1), consumer_group_heartbeat),
    Api(69, "ConsumerGroupDescribe", (0, 1), consumer_group_describe),
    Api(74, "ListConfigResources", (0, 1), list_config_resources),
    Api(75, "DescribeTopicPartitions", (0, 0), describe_topic_partitions),
)

ROWS: dict[int, Api] = {row.key: row for row in _ROWS}
