"""Barnabas: a Kafka-compatible event log in Python.

Everything that programs need of the clients is here: `from barnabas import Producer, NewTopic, KafkaError`.
The modules behind the names are imported when a name is first used, so that `import barnabas` stays cheap."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin import AbortTransactionSpec as AbortTransactionSpec
    from barnabas.client.admin import Acl as Acl
    from barnabas.client.admin import AclFilter as AclFilter
    from barnabas.client.admin import Admin as Admin
    from barnabas.client.admin import AdminError as AdminError
    from barnabas.client.admin import AlterConfigOp as AlterConfigOp
    from barnabas.client.admin import ApiVersionsDescription as ApiVersionsDescription
    from barnabas.client.admin import ClusterDescription as ClusterDescription
    from barnabas.client.admin import ConfigEntry as ConfigEntry
    from barnabas.client.admin import ConfigOperation as ConfigOperation
    from barnabas.client.admin import ConfigResource as ConfigResource
    from barnabas.client.admin import ConfigResourceType as ConfigResourceType
    from barnabas.client.admin import ConfigSynonym as ConfigSynonym
    from barnabas.client.admin import ConsumerGroupDescription as ConsumerGroupDescription
    from barnabas.client.admin import ConsumerGroupListing as ConsumerGroupListing
    from barnabas.client.admin import CreatedTopic as CreatedTopic
    from barnabas.client.admin import DelegationToken as DelegationToken
    from barnabas.client.admin import ElectionType as ElectionType
    from barnabas.client.admin import FeatureDescription as FeatureDescription
    from barnabas.client.admin import FeatureUpdate as FeatureUpdate
    from barnabas.client.admin import FeatureUpgrade as FeatureUpgrade
    from barnabas.client.admin import GroupListing as GroupListing
    from barnabas.client.admin import ListedOffset as ListedOffset
    from barnabas.client.admin import LogDirDescription as LogDirDescription
    from barnabas.client.admin import MemberDescription as MemberDescription
    from barnabas.client.admin import NewPartitions as NewPartitions
    from barnabas.client.admin import NewTopic as NewTopic
    from barnabas.client.admin import OffsetSpec as OffsetSpec
    from barnabas.client.admin import Operation as Operation
    from barnabas.client.admin import PartitionReassignment as PartitionReassignment
    from barnabas.client.admin import PatternType as PatternType
    from barnabas.client.admin import Permission as Permission
    from barnabas.client.admin import ProducerState as ProducerState
    from barnabas.client.admin import ReplicaInfo as ReplicaInfo
    from barnabas.client.admin import ResourceType as ResourceType
    from barnabas.client.admin import ScramCredentialInfo as ScramCredentialInfo
    from barnabas.client.admin import ScramDeletion as ScramDeletion
    from barnabas.client.admin import ScramUpsertion as ScramUpsertion
    from barnabas.client.admin import TopicListing as TopicListing
    from barnabas.client.admin import TopicPartitionReplica as TopicPartitionReplica
    from barnabas.client.admin import TransactionDescription as TransactionDescription
    from barnabas.client.admin import TransactionListing as TransactionListing
    from barnabas.client.aio.admin import AsyncAdmin as AsyncAdmin
    from barnabas.client.aio.consumer import AsyncConsumer as AsyncConsumer
    from barnabas.client.aio.producer import AsyncProducer as AsyncProducer
    from barnabas.client.consumer import Assignor as Assignor
    from barnabas.client.consumer import Consumer as Consumer
    from barnabas.client.consumer import ConsumerRecord as ConsumerRecord
    from barnabas.client.consumer import ConsumerRecords as ConsumerRecords
    from barnabas.client.consumer import CooperativeStickyAssignor as CooperativeStickyAssignor
    from barnabas.client.consumer import RangeAssignor as RangeAssignor
    from barnabas.client.consumer import RebalanceListener as RebalanceListener
    from barnabas.client.consumer import RoundRobinAssignor as RoundRobinAssignor
    from barnabas.client.consumer import StickyAssignor as StickyAssignor
    from barnabas.client.consumer import Subscription as Subscription
    from barnabas.client.consumer.workers import ConsumerWorkers as ConsumerWorkers
    from barnabas.client.errors import AuthenticationError as AuthenticationError
    from barnabas.client.errors import ClosedError as ClosedError
    from barnabas.client.errors import CommitFailedError as CommitFailedError
    from barnabas.client.errors import ConcurrentAccessError as ConcurrentAccessError
    from barnabas.client.errors import ConfigError as ConfigError
    from barnabas.client.errors import DisconnectedError as DisconnectedError
    from barnabas.client.errors import ErrorCode as ErrorCode
    from barnabas.client.errors import KafkaError as KafkaError
    from barnabas.client.errors import KafkaTimeoutError as KafkaTimeoutError
    from barnabas.client.errors import LogTruncationError as LogTruncationError
    from barnabas.client.errors import NoOffsetForPartitionError as NoOffsetForPartitionError
    from barnabas.client.errors import OffsetOutOfRangeError as OffsetOutOfRangeError
    from barnabas.client.errors import OutOfOrderSequenceError as OutOfOrderSequenceError
    from barnabas.client.errors import ProducerFencedError as ProducerFencedError
    from barnabas.client.errors import RebalanceInProgressError as RebalanceInProgressError
    from barnabas.client.errors import RetriableCommitFailedError as RetriableCommitFailedError
    from barnabas.client.errors import SerializationError as SerializationError
    from barnabas.client.errors import TransactionAbortableError as TransactionAbortableError
    from barnabas.client.errors import UnsupportedVersionError as UnsupportedVersionError
    from barnabas.client.errors import WakeupError as WakeupError
    from barnabas.client.generic import Deserializer as Deserializer
    from barnabas.client.producer import Producer as Producer
    from barnabas.client.producer import random_partitioner as random_partitioner
    from barnabas.client.producer import round_robin_partitioner as round_robin_partitioner
    from barnabas.client.producer.records import ProducerRecord as ProducerRecord
    from barnabas.client.producer.tables import BatchFuture as BatchFuture
    from barnabas.client.producer.tables import BatchResult as BatchResult
    from barnabas.client.producer.tables import Written as Written
    from barnabas.client.settings import AdminSettings as AdminSettings
    from barnabas.client.settings import ConsumerSettings as ConsumerSettings
    from barnabas.client.settings import ProducerSettings as ProducerSettings
    from barnabas.client.types import ConsumerGroupMetadata as ConsumerGroupMetadata
    from barnabas.client.types import Node as Node
    from barnabas.client.types import OffsetAndMetadata as OffsetAndMetadata
    from barnabas.client.types import OffsetAndTimestamp as OffsetAndTimestamp
    from barnabas.client.types import PartitionInfo as PartitionInfo
    from barnabas.client.types import RecordMetadata as RecordMetadata
    from barnabas.client.types import SubscriptionPattern as SubscriptionPattern
    from barnabas.client.types import TopicDescription as TopicDescription
    from barnabas.client.types import TopicPartition as TopicPartition
    from barnabas.client.types import TopicPartitionInfo as TopicPartitionInfo
    from barnabas.ids import Uuid as Uuid
    from barnabas.kernels.record_append import RecordFuture as RecordFuture

__version__ = "0.1.0"

# The same names again, for the interpreter. A test compares both lists.
_HOMES = {
    "barnabas.client.admin": (
        "AbortTransactionSpec Acl AclFilter Admin AdminError AlterConfigOp ApiVersionsDescription "
        "ClusterDescription ConfigEntry ConfigOperation ConfigResource ConfigResourceType "
        "ConfigSynonym ConsumerGroupDescription ConsumerGroupListing CreatedTopic DelegationToken "
        "ElectionType FeatureDescription FeatureUpdate FeatureUpgrade GroupListing ListedOffset "
        "LogDirDescription MemberDescription NewPartitions NewTopic OffsetSpec Operation "
        "PartitionReassignment PatternType Permission ProducerState ReplicaInfo ResourceType "
        "ScramCredentialInfo ScramDeletion ScramUpsertion TopicListing TopicPartitionReplica "
        "TransactionDescription TransactionListing"
    ),
    "barnabas.client.aio.admin": "AsyncAdmin",
    "barnabas.client.aio.consumer": "AsyncConsumer",
    "barnabas.client.aio.producer": "AsyncProducer",
    "barnabas.client.consumer": (
        "Assignor Consumer ConsumerRecord ConsumerRecords CooperativeStickyAssignor RangeAssignor "
        "RebalanceListener RoundRobinAssignor StickyAssignor Subscription"
    ),
    "barnabas.client.consumer.workers": "ConsumerWorkers",
    "barnabas.client.errors": (
        "AuthenticationError ClosedError CommitFailedError ConcurrentAccessError ConfigError "
        "DisconnectedError ErrorCode KafkaError KafkaTimeoutError LogTruncationError "
        "NoOffsetForPartitionError OffsetOutOfRangeError OutOfOrderSequenceError "
        "ProducerFencedError RebalanceInProgressError RetriableCommitFailedError SerializationError "
        "TransactionAbortableError UnsupportedVersionError WakeupError"
    ),
    "barnabas.client.generic": "Deserializer",
    "barnabas.client.producer": "Producer random_partitioner round_robin_partitioner",
    "barnabas.client.producer.records": "ProducerRecord",
    "barnabas.client.producer.tables": "BatchFuture BatchResult Written",
    "barnabas.client.settings": "AdminSettings ConsumerSettings ProducerSettings",
    "barnabas.client.types": (
        "ConsumerGroupMetadata Node OffsetAndMetadata OffsetAndTimestamp PartitionInfo "
        "RecordMetadata SubscriptionPattern TopicDescription TopicPartition TopicPartitionInfo"
    ),
    "barnabas.ids": "Uuid",
    "barnabas.kernels.record_append": "RecordFuture",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AbortTransactionSpec",
    "Acl",
    "AclFilter",
    "Admin",
    "AdminError",
    "AdminSettings",
    "AlterConfigOp",
    "ApiVersionsDescription",
    "Assignor",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "AuthenticationError",
    "BatchFuture",
    "BatchResult",
    "ClosedError",
    "ClusterDescription",
    "CommitFailedError",
    "ConcurrentAccessError",
    "ConfigEntry",
    "ConfigError",
    "ConfigOperation",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSynonym",
    "Consumer",
    "ConsumerGroupDescription",
    "ConsumerGroupListing",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "ConsumerRecords",
    "ConsumerSettings",
    "ConsumerWorkers",
    "CooperativeStickyAssignor",
    "CreatedTopic",
    "DelegationToken",
    "Deserializer",
    "DisconnectedError",
    "ElectionType",
    "ErrorCode",
    "FeatureDescription",
    "FeatureUpdate",
    "FeatureUpgrade",
    "GroupListing",
    "KafkaError",
    "KafkaTimeoutError",
    "ListedOffset",
    "LogDirDescription",
    "LogTruncationError",
    "MemberDescription",
    "NewPartitions",
    "NewTopic",
    "NoOffsetForPartitionError",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "OffsetSpec",
    "Operation",
    "OutOfOrderSequenceError",
    "PartitionInfo",
    "PartitionReassignment",
    "PatternType",
    "Permission",
    "Producer",
    "ProducerFencedError",
    "ProducerRecord",
    "ProducerSettings",
    "ProducerState",
    "RangeAssignor",
    "RebalanceInProgressError",
    "RebalanceListener",
    "RecordFuture",
    "RecordMetadata",
    "ReplicaInfo",
    "ResourceType",
    "RetriableCommitFailedError",
    "RoundRobinAssignor",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramUpsertion",
    "SerializationError",
    "StickyAssignor",
    "Subscription",
    "SubscriptionPattern",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "TopicPartitionInfo",
    "TopicPartitionReplica",
    "TransactionAbortableError",
    "TransactionDescription",
    "TransactionListing",
    "UnsupportedVersionError",
    "Uuid",
    "WakeupError",
    "Written",
    "__version__",
    "random_partitioner",
    "round_robin_partitioner",
]


if not TYPE_CHECKING:
    # Type checkers would believe that every name exists.
    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            # Only this call knows what asked for the name.
            raise _missing_name(name, is_import=sys._getframe(1).f_code.co_name == "_handle_fromlist")
        # Kept, so that the next use of the name does not come here.
        globals()[name] = found = getattr(import_module(home), name)
        return found


def _missing_name(name: str, *, is_import: bool) -> Exception:
    """The error for a name that does not exist, with a hint if it is one of another client. If it is an
    AttributeError, `from barnabas import ...` replaces it with an error that has no hint."""
    if name[:1].isupper():
        from barnabas.client.habits import NAMES

        if hint := NAMES.get(name):
            text = f"barnabas has no {name}: {hint}"
            return ImportError(text) if is_import else AttributeError(text)
    return AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
