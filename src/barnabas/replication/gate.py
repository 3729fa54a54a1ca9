"""The gate: who may read and write what. A rule that lets a client in or refuses it is one line here.

The gate answers with a permit (kernels/log_end.py), which holds until the partition withdraws it because its
leader, in-sync set, config or log changed. The ordinary ways of Produce and Fetch ask for each request. The
short ways keep permits, give up when the gate refuses, and never decide by themselves. So a new rule belongs
here:

- one about the asker or the partition: in `to_read` or `to_write`. If what it depends on can change, that
  change must withdraw the permits of the partitions concerned.
- one about what a request says: in one of the checks, which run each time."""

from typing import NamedTuple, Protocol, TypeAlias

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import INTERNAL_TOPICS, ZERO_UUID, Uuid
from barnabas.kernels.log_end import Permit
from barnabas.log.leader_epochs import EpochEntry
from barnabas.records.compression import ZSTD
from barnabas.replication.partition import NO_EPOCH, Partition
from barnabas.replication.ports import NO_BROKER_EPOCH
from barnabas.replication.replicas import Replicas
from barnabas.security.principal import ANONYMOUS, Principal

# Tools with this client id may write to internal topics, as in Kafka.
ADMIN_CLIENT_ID = "__admin_client"
ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
PRODUCE_ZSTD_VERSION_MIN = 7
FETCH_ZSTD_VERSION_MIN = 10
# Clients from this version on may read from followers (KIP-392).
FETCH_FOLLOWERS_VERSION_MIN = 11
NO_REPLICA = -1

Topic: TypeAlias = str | None


class Asker(NamedTuple):
    """Who asks: rights and quotas depend on this. `version` is the version of the API that is used. A broker
    that fetches as a replica says so with its id and its broker epoch."""

    listener: str
    client_id: str | None
    version: int
    replica_id: int = NO_REPLICA
    broker_epoch: int = NO_BROKER_EPOCH
    principal: Principal = ANONYMOUS
    host: str = ""
    # If the gate refuses, the ordinary way asks again.
    is_short_way: bool = False

    @property
    def is_replica(self) -> bool:
        return self.replica_id > NO_REPLICA


class Rights(Protocol):
    """The rights of an asker. When they change, all permits are withdrawn."""

    def may_write(self, asker: Asker, topic: str) -> bool: ...

    def may_read(self, asker: Asker, topic: str) -> bool:
        """Whether a client may read the topic, or whether a replica may be one."""
        ...


class Gate:
    """Without `rights` everybody may read and write everything. Brokers use `broker_listener`."""

    def __init__(self, replicas: Replicas, broker_listener: str, rights: Rights | None = None) -> None:
        self._replicas = replicas
        self._broker_listener = broker_listener
        self._rights = rights

    def to_write(self, asker: Asker, topic: Topic, index: int, acks: int) -> Permit:
        """A permit to append to the partition. `topic` is None if no topic has the id of the request."""
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if self._rights is not None and not self._rights.may_write(asker, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic in INTERNAL_TOPICS and asker.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only coordinators may write to {topic}")
        partition = self._replicas.leader(topic, index)
        if acks == ACKS_ALL:
            partition.check_enough_in_sync()
        return partition.permit()

    def to_write_marker(self, topic: str, index: int) -> Partition:
        """The partition in which a coordinator ends a transaction. Like all that must not be lost, a marker
        is refused before it is written if it could not be committed."""
        partition = self._replicas.leader(topic, index)
        if partition.has_lost_in_sync:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return partition

    def to_read(self, asker: Asker, topic: Topic, topic_id: Uuid, index: int) -> Permit:
        """A permit to read the partition. `topic` is None if no topic has the id of the request."""
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if self._rights is not None and not self._rights.may_read(asker, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if asker.is_replica or asker.version < FETCH_FOLLOWERS_VERSION_MIN:
            partition = self._replicas.leader(topic, index)
        else:
            partition = self._replicas.replica(topic, index)
        if topic_id not in (ZERO_UUID, partition.topic_id):
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        return partition.permit()

    def to_describe(self, asker: Asker, topic: str, index: int, leader_epoch: int) -> Partition:
        """The partition whose offsets and epochs a client asks for."""
        partition = self._replicas.leader(topic, index)
        partition.check_epoch(leader_epoch)
        return partition

    def to_inspect(self, asker: Asker, topic: str, index: int, leader_epoch: int) -> Partition:
        """The replica on this broker, as leader or follower, for tools that compare replicas."""
        partition = self._replicas.replica(topic, index)
        partition.check_epoch(leader_epoch)
        return partition

    def to_delete_records(self, asker: Asker, topic: str, index: int) -> Partition:
        """The partition whose oldest records a client deletes."""
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = self._replicas.leader(topic, index)
        config = partition.log.config
        if config.cleanup_compact and not config.cleanup_delete:
            # Without the newest record of a key its older state would be lost for good.
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        return partition

    def check_replica(self, asker: Asker) -> None:
        """A client that poses as a replica could move the high watermark. Only who uses the listener of the
        brokers, and knows the present epoch of a registered one, counts as that broker."""
        if asker.listener != self._broker_listener:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        current = self._replicas.registered_epoch(asker.replica_id)
        if current is None or asker.broker_epoch == NO_BROKER_EPOCH:
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if current != asker.broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {asker.replica_id} has epoch {current} here, not {asker.broker_epoch}",
            )

    @staticmethod
    def check_read(asker: Asker, permit: Permit, leader_epoch: int) -> None:
        """What a Fetch says about itself must fit the partition."""
        partition: Partition = permit.partition
        if leader_epoch != permit.leader_epoch:
            if asker.is_replica and leader_epoch == NO_EPOCH:
                # A follower of which leader? Its offset may be one of another history.
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, "a replica must send the leader epoch")
            partition.check_epoch(leader_epoch)
        if permit.stores_zstd and asker.version < FETCH_ZSTD_VERSION_MIN:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    @staticmethod
    def check_offset(asker: Asker, permit: Permit, offset: int) -> None:
        """The offset of a Fetch must be in the log. One that has read another history is told so first: its
        offset may be above the end of this log.

        A client that is above the end starts over, so only one that still leads may say that. A replica has
        sent the leader epoch, and is in the same one."""
        partition: Partition = permit.partition
        if partition.log.log_start_offset <= offset <= partition.log.log_end_offset:
            return
        if offset > partition.log.log_end_offset and partition.is_leader and not asker.is_replica:
            partition.check_still_led()
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)

    @staticmethod
    def epoch_end(partition: Partition, epoch: int) -> EpochEntry:
        """Where an epoch ends in the log of this leader. A client whose epoch is not known starts over: one
        that has read from a newer leader must not hear that from a former one."""
        end = partition.log.end_offset_for_epoch(epoch)
        if end.epoch < 0 and partition.is_leader:
            partition.check_still_led()
        return end

    @staticmethod
    def read_end(asker: Asker, partition: Partition, committed_only: bool) -> int:
        """The offset before which the asker may read."""
        if asker.is_replica:
            return partition.log.log_end_offset
        return partition.last_stable_offset if committed_only else partition.high_watermark

    @staticmethod
    def check_codec(asker: Asker, codec: int) -> None:
        """A batch may be compressed only with what the version of Produce knows."""
        if codec == ZSTD and asker.version < PRODUCE_ZSTD_VERSION_MIN:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"zstd needs Produce version {PRODUCE_ZSTD_VERSION_MIN} or newer",
            )
