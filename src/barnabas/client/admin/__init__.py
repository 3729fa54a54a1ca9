"""The admin client: topics, settings, groups, offsets, transactions, users and rights of a cluster.

    with Admin(bootstrap_servers="localhost:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=3)])
        print(admin.lag_of("billing"))

Methods wait for the cluster, at most `timeout` seconds (default.api.timeout.ms), and retry what may succeed
later. A method for many items returns a dict. If some items fail it raises AdminError, which has the results
and the errors of all items."""

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.batches import BatchAdmin
from barnabas.client.admin.cluster import ClusterAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.epochs import EpochAdmin
from barnabas.client.admin.features import FeatureAdmin
from barnabas.client.admin.group_descriptions import GroupDescriptionAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.log_dirs import LogDirAdmin
from barnabas.client.admin.offsets import OffsetAdmin
from barnabas.client.admin.producers import ProducerAdmin
from barnabas.client.admin.quotas import QuotaAdmin
from barnabas.client.admin.reassignments import ReassignmentAdmin
from barnabas.client.admin.replicas import ReplicaAdmin
from barnabas.client.admin.tokens import DelegationToken, TokenAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.types import (
    AbortTransactionSpec,
    AdminError,
    AlterConfigOp,
    ApiVersionsDescription,
    ClusterDescription,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
    ConsumerGroupDescription,
    ConsumerGroupListing,
    CreatedTopic,
    ElectionType,
    FeatureDescription,
    FeatureUpdate,
    FeatureUpgrade,
    GroupListing,
    ListedOffset,
    LogDirDescription,
    MemberDescription,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PartitionReassignment,
    ProducerState,
    ReplicaInfo,
    TopicListing,
    TopicPartitionReplica,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.admin.users import ScramCredentialInfo, ScramDeletion, ScramUpsertion, UserAdmin
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

__all__ = [
    "AbortTransactionSpec",
    "Acl",
    "AclFilter",
    "Admin",
    "AdminError",
    "AlterConfigOp",
    "ApiVersionsDescription",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSynonym",
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "CreatedTopic",
    "DelegationToken",
    "ElectionType",
    "FeatureDescription",
    "FeatureUpdate",
    "FeatureUpgrade",
    "GroupListing",
    "ListedOffset",
    "LogDirDescription",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "Operation",
    "PartitionReassignment",
    "PatternType",
    "Permission",
    "ProducerState",
    "ReplicaInfo",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramUpsertion",
    "TopicListing",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
]


class Admin(
    TopicAdmin,
    ConfigAdmin,
    BatchAdmin,
    ClusterAdmin,
    FeatureAdmin,
    EpochAdmin,
    LogDirAdmin,
    GroupDescriptionAdmin,
    GroupAdmin,
    OffsetAdmin,
    ProducerAdmin,
    QuotaAdmin,
    ReassignmentAdmin,
    ReplicaAdmin,
    TransactionAdmin,
    AclAdmin,
    UserAdmin,
    TokenAdmin,
):
    """The settings are Kafka's: keyword arguments with underscores, or a dict with dots."""
