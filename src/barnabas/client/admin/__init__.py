"""The admin client: topics, settings, groups, offsets, transactions of a cluster.

    with Admin(bootstrap_servers="localhost:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=3)])
        print(admin.lag_of("billing"))

Methods wait for the cluster, at most `timeout` seconds (default.api.timeout.ms), and try again by themselves
what may succeed later. A method for many things gives a dict; if some fail it raises AdminError, which holds
the results and the errors by thing."""

from barnabas.client.admin.cluster import ClusterAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.group_descriptions import GroupDescriptionAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.log_dirs import LogDirAdmin
from barnabas.client.admin.offsets import OffsetAdmin
from barnabas.client.admin.producers import ProducerAdmin
from barnabas.client.admin.reassignments import ReassignmentAdmin
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
    TransactionDescription,
    TransactionListing,
)

__all__ = [
    "AbortTransactionSpec",
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
    "ListedOffset",
    "LogDirDescription",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionReassignment",
    "ProducerState",
    "ReplicaInfo",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
]


class Admin(
    TopicAdmin,
    ConfigAdmin,
    ClusterAdmin,
    LogDirAdmin,
    GroupDescriptionAdmin,
    GroupAdmin,
    OffsetAdmin,
    ProducerAdmin,
    ReassignmentAdmin,
    TransactionAdmin,
):
    """Settings are Kafka's: as keyword arguments with underscores, or as a dict with dots."""
