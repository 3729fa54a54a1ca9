"""The rules of the gate, one by one."""

import dataclasses
from collections.abc import Callable

import pytest
from tests.unit.replication.conftest import ME, OTHER, Held

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import OFFSETS_TOPIC, ZERO_UUID
from barnabas.metadata.records import BrokerRecord
from barnabas.records.compression import GZIP, ZSTD
from barnabas.replication.gate import ACKS_ALL, ACKS_LEADER, ACKS_NONE, Asker
from barnabas.replication.partition import CERTAIN_SECONDS

ASKER = Asker("PLAINTEXT", "a client", 9)


def code_of(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        work()
    return refused.value.code


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER, ACKS_NONE])
def test_a_leader_may_be_written_to_with_any_known_acks(held: Held, acks: int) -> None:
    held.create("topic")
    assert held.gate.to_write(ASKER, "topic", 0, acks) is held.partition().permit()


@pytest.mark.parametrize(
    ("topic", "acks", "code"),
    [
        ("topic", 2, ErrorCode.INVALID_REQUIRED_ACKS),
        (None, ACKS_ALL, ErrorCode.UNKNOWN_TOPIC_ID),
        ("nothing", ACKS_ALL, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (OFFSETS_TOPIC, ACKS_ALL, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("led elsewhere", ACKS_ALL, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_writers_are_refused(held: Held, topic: str | None, acks: int, code: ErrorCode) -> None:
    held.create("topic")
    held.create(OFFSETS_TOPIC)
    held.create("led elsewhere", leader=OTHER)
    assert code_of(lambda: held.gate.to_write(ASKER, topic, 0, acks)) == code


def test_tools_may_write_to_internal_topics(held: Held) -> None:
    held.create(OFFSETS_TOPIC)
    admin = ASKER._replace(client_id="__admin_client")
    assert held.gate.to_write(admin, OFFSETS_TOPIC, 0, ACKS_ALL)


def test_too_few_in_sync_refuse_acks_all_only(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    partition.update_config(dataclasses.replace(partition.log.config, min_insync_replicas=2))
    partition.replicas = (ME, OTHER)
    assert held.gate.to_write(ASKER, "topic", 0, ACKS_LEADER)
    assert code_of(lambda: held.gate.to_write(ASKER, "topic", 0, ACKS_ALL)) == ErrorCode.NOT_ENOUGH_REPLICAS
    partition.replicas = (ME,)
    assert held.gate.to_write(ASKER, "topic", 0, ACKS_ALL), "there is only one replica"


def test_a_log_that_is_offline_is_neither_read_nor_written(held: Held) -> None:
    held.create("topic")
    held.partition().log.go_offline()
    for ask in (
        lambda: held.gate.to_write(ASKER, "topic", 0, ACKS_ALL),
        lambda: held.gate.to_read(ASKER, "topic", ZERO_UUID, 0),
    ):
        assert code_of(ask) == ErrorCode.KAFKA_STORAGE_ERROR


def test_readers_name_the_topic_by_name_or_by_its_own_id(held: Held) -> None:
    topic_id = held.create("topic")
    for named in (ZERO_UUID, topic_id):
        assert held.gate.to_read(ASKER, "topic", named, 0) is held.partition().permit()
    other = b"x" * 16
    assert code_of(lambda: held.gate.to_read(ASKER, "topic", other, 0)) == ErrorCode.INCONSISTENT_TOPIC_ID
    assert code_of(lambda: held.gate.to_read(ASKER, None, other, 0)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert (
        code_of(lambda: held.gate.to_read(ASKER, "topic", topic_id, 1))
        == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


@pytest.mark.parametrize(
    ("epoch", "offset", "code"),
    [
        (2, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (4, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (3, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, 3, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_read_must_fit_the_partition(held: Held, epoch: int, offset: int, code: ErrorCode) -> None:
    held.create("topic")
    held.append(held.partition(), 2)
    permit = held.partition().permit()
    held.gate.check_read(ASKER, permit, 3)
    held.gate.check_offset(ASKER, permit, 2)

    def read() -> None:
        held.gate.check_read(ASKER, permit, epoch)
        held.gate.check_offset(ASKER, permit, offset)

    assert code_of(read) == code


def test_only_a_leader_that_certainly_still_leads_says_what_makes_clients_start_over(held: Held) -> None:
    """A leader that was paused knows nothing of its successor, nor of the records that it has got."""
    held.create("topic", isr=(ME, OTHER))
    partition = held.partition()
    held.append(partition, 2)
    permit, epoch = partition.permit(), partition.leader_epoch
    since: list[float] = []

    def is_newest_since(moment: float) -> bool:
        since.append(moment)
        return False

    held.replicas.surroundings.is_image_newest_since = is_newest_since
    beyond = ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(lambda: held.gate.check_offset(ASKER, permit, 3)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: held.gate.epoch_end(partition, epoch + 1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert since == [held.clock.monotonic() - CERTAIN_SECONDS] * 2
    replica = ASKER._replace(replica_id=OTHER)
    assert code_of(lambda: held.gate.check_offset(replica, permit, 3)) == beyond
    assert code_of(lambda: held.gate.check_offset(ASKER, permit, -1)) == beyond
    assert held.gate.epoch_end(partition, epoch) == (epoch, 2)

    held.replicas.surroundings.is_image_newest_since = lambda moment: True
    assert code_of(lambda: held.gate.check_offset(ASKER, permit, 3)) == beyond
    assert held.gate.epoch_end(partition, epoch + 1) == (-1, -1)


def test_zstd_needs_new_versions(held: Held) -> None:
    held.create("topic")
    partition = held.partition()
    partition.update_config(dataclasses.replace(partition.log.config, compression_type="zstd"))
    old, new = ASKER, ASKER._replace(version=10)
    held.gate.check_read(new, partition.permit(), -1)
    unsupported = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert code_of(lambda: held.gate.check_read(old, partition.permit(), -1)) == unsupported
    held.gate.check_codec(ASKER._replace(version=7), ZSTD)
    held.gate.check_codec(ASKER._replace(version=3), GZIP)
    assert code_of(lambda: held.gate.check_codec(ASKER._replace(version=6), ZSTD)) == unsupported


def test_clients_read_what_is_committed(held: Held) -> None:
    held.create("topic", isr=(ME, OTHER))
    held.append(held.partition(), 2)
    assert held.gate.read_end(ASKER, held.partition(), committed_only=False) == 0
    held.partition().log.update_high_watermark(2)
    assert held.gate.read_end(ASKER, held.partition(), committed_only=True) == 2


def test_the_leader_describes_offsets_in_the_epoch_of_the_client(held: Held) -> None:
    held.create("topic")
    for epoch in (-1, 3):
        assert held.gate.to_describe(ASKER, "topic", 0, epoch) is held.partition()
    assert code_of(lambda: held.gate.to_describe(ASKER, "topic", 0, 2)) == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize(
    ("topic", "policy", "code"),
    [
        (OFFSETS_TOPIC, "delete", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("topic", "compact", ErrorCode.POLICY_VIOLATION),
    ],
)
def test_records_that_may_not_be_deleted(held: Held, topic: str, policy: str, code: ErrorCode) -> None:
    held.create(topic)
    partition = held.partition(topic)
    held.gate.to_describe(ASKER, topic, 0, -1)
    config = dataclasses.replace(
        partition.log.config, cleanup_compact=policy == "compact", cleanup_delete=policy == "delete"
    )
    partition.update_config(config)
    assert code_of(lambda: held.gate.to_delete_records(ASKER, topic, 0)) == code


def test_only_a_registered_broker_with_its_present_epoch_on_its_listener_counts_as_a_replica(
    held: Held,
) -> None:
    held.apply(BrokerRecord(OTHER, 7, b"i" * 16, (), fenced=True))
    replica = ASKER._replace(replica_id=OTHER, broker_epoch=7)
    held.gate.check_replica(replica)
    for impostor, code in (
        (replica._replace(replica_id=5), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (replica._replace(broker_epoch=-1), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (replica._replace(listener="CLIENTS"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (replica._replace(broker_epoch=6), ErrorCode.STALE_BROKER_EPOCH),
    ):
        assert code_of(lambda impostor=impostor: held.gate.check_replica(impostor)) == code  # type: ignore[misc]


def test_replicas_read_up_to_the_end_of_the_log(held: Held) -> None:
    held.create("topic", isr=(ME, OTHER))
    held.append(held.partition(), 2)
    replica = ASKER._replace(replica_id=OTHER, broker_epoch=7)
    assert held.gate.read_end(replica, held.partition(), committed_only=False) == 2


def test_clients_that_know_racks_may_read_from_a_follower_and_replicas_may_not(held: Held) -> None:
    held.create("topic", isr=(ME, OTHER), leader=OTHER)
    nearby = ASKER._replace(version=11)
    assert held.gate.to_read(nearby, "topic", ZERO_UUID, 0).partition is held.partition()
    for asker in (ASKER._replace(version=10), nearby._replace(replica_id=OTHER, broker_epoch=7)):
        refused = code_of(lambda asker=asker: held.gate.to_read(asker, "topic", ZERO_UUID, 0))  # type: ignore[misc]
        assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: held.gate.to_write(nearby, "topic", 0, ACKS_ALL)) == refused
