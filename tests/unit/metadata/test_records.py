"""Metadata records as JSON, and the refusal of unknown ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.records import (
    AclRecord,
    BrokerRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerRecord,
    DelegationTokenRecord,
    FeatureRecord,
    Listener,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAclRecord,
    RemoveBrokerRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    ScramCredentialRecord,
    TopicRecord,
    UnknownRecord,
    record_from_json,
    record_to_json,
)

uuids = st.binary(min_size=16, max_size=16)
ids = st.integers(0, 2**31 - 1)
id_tuples = st.lists(ids, max_size=5).map(tuple)
epochs = st.integers(-1, 2**62)
texts = st.text(max_size=20)
listeners = st.lists(st.builds(Listener, texts, texts, ids, texts), max_size=3).map(tuple)
uuid_tuples = st.lists(uuids, max_size=3).map(tuple)

entities = st.lists(st.tuples(texts, st.none() | texts), max_size=2).map(tuple)

records = st.one_of(
    st.builds(TopicRecord, texts, uuids),
    st.builds(AclRecord, uuids, ids, texts, ids, texts, texts, ids, ids),
    st.builds(RemoveAclRecord, uuids),
    st.builds(
        PartitionRecord,
        uuids,
        ids,
        id_tuples,
        id_tuples,
        ids,
        ids,
        ids,
        uuid_tuples,
        id_tuples,
        id_tuples,
        id_tuples,
        id_tuples,
        st.integers(0, 1),
    ),
    st.builds(
        PartitionChangeRecord,
        uuids,
        ids,
        st.none() | ids,
        st.none() | id_tuples,
        st.none() | id_tuples,
        st.none() | id_tuples,
        st.none() | id_tuples,
        st.none() | id_tuples,
        st.none() | id_tuples,
        st.none() | st.integers(0, 1),
        st.none() | uuid_tuples,
    ),
    st.builds(RemoveTopicRecord, uuids),
    st.builds(ConfigRecord, ids, texts, texts, st.none() | texts),
    st.builds(
        BrokerRecord,
        ids,
        epochs,
        uuids,
        listeners,
        st.none() | texts,
        st.booleans(),
        st.booleans(),
        uuid_tuples,
    ),
    st.builds(RemoveBrokerRecord, ids, epochs),
    st.builds(DelegationTokenRecord, texts, texts, texts, st.lists(texts).map(tuple), epochs, epochs, epochs),
    st.builds(RemoveDelegationTokenRecord, texts),
    st.builds(ScramCredentialRecord, texts, st.integers(1, 2), st.none() | texts),
    st.builds(ProducerIdsRecord, ids, epochs, epochs),
    st.builds(FeatureRecord, texts, ids),
    st.builds(ControllerRecord, ids, ids),
    st.builds(ClientQuotaRecord, entities, texts, st.none() | st.floats(0, 1e18)),
)


@given(records)
def test_a_record_reads_back_as_it_was_written(record: MetadataRecord) -> None:
    assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record


def test_the_written_form_is_pinned() -> None:
    record = PartitionRecord(bytes(15) + b"\x05", 3, (1, 2), (1,), 1, 7, 9)
    assert record_to_json(record) == {
        "type": "partition",
        "version": 1,
        "topic_id": "AAAAAAAAAAAAAAAAAAAABQ",
        "partition": 3,
        "replicas": [1, 2],
        "isr": [1],
        "leader": 1,
        "leader_epoch": 7,
        "partition_epoch": 9,
    }


def test_records_of_version_0_can_be_read() -> None:
    topic_id = "AAAAAAAAAAAAAAAAAAAABQ"
    partition = {"type": "partition", "version": 0, "topic_id": topic_id, "partition": 3, "replicas": [1, 2]}
    partition |= {"isr": [1], "leader": 1, "leader_epoch": 7, "partition_epoch": 9, "directories": []}
    assert record_from_json(partition) == PartitionRecord(bytes(15) + b"\x05", 3, (1, 2), (1,), 1, 7, 9)
    change = {"type": "partition-change", "version": 0, "topic_id": topic_id, "partition": 3, "isr": [2]}
    assert record_from_json(change) == PartitionChangeRecord(bytes(15) + b"\x05", 3, isr=(2,))
    broker = {"type": "broker", "version": 0, "id": 4, "epoch": 8, "incarnation": topic_id, "fenced": True}
    broker |= {"listeners": [["PLAINTEXT", "localhost", 9092, "PLAINTEXT"]]}
    listener = Listener("PLAINTEXT", "localhost", 9092)
    assert record_from_json(broker) == BrokerRecord(4, 8, bytes(15) + b"\x05", (listener,), fenced=True)


def test_an_unknown_type_is_refused_in_one_sentence() -> None:
    with pytest.raises(UnknownRecord, match="record of unknown type 'quota'"):
        record_from_json({"type": "quota", "version": 0})


@pytest.mark.parametrize("version", [1, -1, None, "0"])
def test_an_unknown_version_is_refused(version: object) -> None:
    fields = {**record_to_json(FeatureRecord("group.version", 1)), "version": version}
    with pytest.raises(UnknownRecord, match="feature record of version"):
        record_from_json(fields)


def test_a_config_without_a_value_differs_from_an_empty_one() -> None:
    removed, empty = ConfigRecord(2, "a", "key", None), ConfigRecord(2, "a", "key", "")
    assert record_from_json(record_to_json(removed)) == removed
    assert record_from_json(record_to_json(empty)) == empty
