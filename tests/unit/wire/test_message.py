"""What every generated message has in common."""

import pytest

from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest


def test_fields_have_protocol_defaults() -> None:
    partition = FetchPartition()
    assert (partition.fetch_offset, partition.current_leader_epoch) == (0, -1)


def test_arrays_are_not_shared_between_messages() -> None:
    first = FetchTopic()
    first.partitions.append(FetchPartition())
    assert FetchTopic().partitions == []


def test_struct_defaults_are_shared_and_cannot_be_changed() -> None:
    data = PartitionData()
    with pytest.raises(AttributeError, match="shared default"):
        data.snapshot_id.epoch = 3
    data.snapshot_id = SnapshotId(epoch=3)
    assert PartitionData().snapshot_id == SnapshotId()


def test_an_unknown_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="offset"):
        FetchPartition(offset=3)  # type: ignore[call-arg]


def test_equal_by_value() -> None:
    assert FetchTopic(topic="a") == FetchTopic(topic="a")
    assert FetchTopic(topic="a") != FetchTopic(topic="b")
    assert FetchTopic() != FetchPartition()


def test_repr_shows_fields_that_differ_from_their_default_and_no_secrets() -> None:
    assert repr(FetchPartition(partition=3)) == "FetchPartition(partition=3)"
    request = FetchRequest(max_wait_ms=5, topics=[FetchTopic(topic="orders")])
    assert repr(request) == "FetchRequest(max_wait_ms=5, topics=[FetchTopic(topic='orders')])"
    assert (
        repr(SaslAuthenticateRequest(auth_bytes=b"secret")) == "SaslAuthenticateRequest(auth_bytes=<6 bytes>)"
    )


def test_a_shared_default_can_be_printed() -> None:
    assert repr(FetchRequest().replica_state) == repr(ReplicaState()) == "ReplicaState()"
