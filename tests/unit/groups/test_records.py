"""The records of `__consumer_offsets`, byte for byte as Kafka lays them out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.record_schemas import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    PartitionRacks,
    SubscribedTopic,
    TargetTopicPartitions,
)
from barnabas.groups.records import GroupRecord, decode, encode, record_type, tombstone

TOPIC_ID = bytes(range(16))
ID_HEX = TOPIC_ID.hex()

OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=3)
OFFSET_KEY_HEX = "0001 0001 67 0001 74 00000003"

# Each record with its key and its value, written by hand from the schemas; fields are separated by spaces.
GOLDEN = {
    "offset, no topic id": (
        GroupRecord(
            OFFSET_KEY, OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)
        ),
        OFFSET_KEY_HEX,
        "0004 0000000000000005 00000002 02 6d 0000000000000009 00",
    ),
    "offset, topic id": (
        GroupRecord(OFFSET_KEY, OffsetCommitValue(offset=5, commit_timestamp=9, topic_id=TOPIC_ID)),
        OFFSET_KEY_HEX,
        f"0004 0000000000000005 ffffffff 01 0000000000000009 01 00 10 {ID_HEX}",
    ),
    "offset with the client's own retention": (
        GroupRecord(OFFSET_KEY, OffsetCommitValue(offset=5, commit_timestamp=9, expire_timestamp=16)),
        OFFSET_KEY_HEX,
        "0001 0000000000000005 0000 0000000000000009 0000000000000010",
    ),
    "classic group": (
        GroupRecord(
            GroupMetadataKey(group="g"),
            GroupMetadataValue(
                protocol_type="consumer",
                generation=7,
                protocol="range",
                leader="m",
                current_state_timestamp=8,
                members=[
                    MemberMetadata(
                        member_id="m",
                        group_instance_id="i",
                        client_id="c",
                        client_host="/h",
                        rebalance_timeout=1,
                        session_timeout=2,
                        subscription=b"\x0a",
                        assignment=b"\x0b\x0c",
                    )
                ],
            ),
        ),
        "0002 0001 67",
        "0003 0008 636f6e73756d6572 00000007 0005 72616e6765 0001 6d 0000000000000008 00000001"
        "0001 6d 0001 69 0001 63 0002 2f68 00000001 00000002 00000001 0a 00000002 0b0c",
    ),
    "classic group, empty": (
        GroupRecord(GroupMetadataKey(group="g"), GroupMetadataValue(generation=1)),
        "0002 0001 67",
        "0003 0000 00000001 ffff ffff ffffffffffffffff 00000000",
    ),
    "consumer group": (
        GroupRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3)),
        "0003 0001 67",
        "0000 00000003 00",
    ),
    "consumer group, hash of its topics": (
        GroupRecord(
            ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3, metadata_hash=-2)
        ),
        "0003 0001 67",
        "0000 00000003 01 00 08 fffffffffffffffe",
    ),
    "partition metadata": (
        GroupRecord(
            ConsumerGroupPartitionMetadataKey(group_id="g"),
            ConsumerGroupPartitionMetadataValue(
                topics=[
                    SubscribedTopic(
                        topic_id=TOPIC_ID,
                        topic_name="t",
                        num_partitions=2,
                        partition_metadata=[PartitionRacks(partition=1, racks=["r"])],
                    )
                ]
            ),
        ),
        "0004 0001 67",
        f"0000 02 {ID_HEX} 02 74 00000002 02 00000001 02 02 72 00 00 00",
    ),
    "member": (
        GroupRecord(
            ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
            ConsumerGroupMemberMetadataValue(
                rack_id="r",
                client_id="c",
                client_host="h",
                subscribed_topic_names=["t"],
                rebalance_timeout_ms=16,
            ),
        ),
        "0005 0001 67 0001 6d",
        "0000 00 02 72 02 63 02 68 02 02 74 00 00000010 00 01 00 01 00",
    ),
    "member that speaks the classic protocol": (
        GroupRecord(
            ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
            ConsumerGroupMemberMetadataValue(
                instance_id="i",
                server_assignor="u",
                subscribed_topic_regex="x",
                classic_member_metadata=ClassicMemberMetadata(
                    session_timeout_ms=2, supported_protocols=[ClassicProtocol(name="p", metadata=b"\x0a")]
                ),
            ),
        ),
        "0005 0001 67 0001 6d",
        "0000 02 69 00 01 01 01 02 78 ffffffff 02 75 01 00 0c 01 00000002 02 02 70 02 0a 00 00",
    ),
    "target epoch": (
        GroupRecord(
            ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=4),
        ),
        "0006 0001 67",
        "0000 00000004 00",
    ),
    "target epoch and time": (
        GroupRecord(
            ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=4, assignment_timestamp=5),
        ),
        "0006 0001 67",
        "0000 00000004 01 00 08 0000000000000005",
    ),
    "target of a member": (
        GroupRecord(
            ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m"),
            ConsumerGroupTargetAssignmentMemberValue(
                topic_partitions=[TargetTopicPartitions(topic_id=TOPIC_ID, partitions=[0, 1])]
            ),
        ),
        "0007 0001 67 0001 6d",
        f"0000 02 {ID_HEX} 03 00000000 00000001 00 00",
    ),
    "what a member has": (
        GroupRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=3,
                previous_member_epoch=2,
                state=1,
                assigned_partitions=[
                    CurrentTopicPartitions(topic_id=TOPIC_ID, partitions=[5], assignment_epochs=[2])
                ],
                partitions_pending_revocation=[CurrentTopicPartitions(topic_id=TOPIC_ID, partitions=[6])],
            ),
        ),
        "0008 0001 67 0001 6d",
        f"0000 00000003 00000002 01 02 {ID_HEX} 02 00000005 01 00 05 02 00000002"
        f"02 {ID_HEX} 02 00000006 00 00",
    ),
    "regular expression": (
        GroupRecord(
            ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="t.*"),
            ConsumerGroupRegularExpressionValue(topics=["t"], version=1, timestamp=2),
        ),
        "0010 0001 67 0003 742e2a",
        "0000 02 02 74 0000000000000001 0000000000000002 00",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes(name: str) -> None:
    record, key, value = GOLDEN[name]
    golden = JournalRecord(bytes.fromhex(key), bytes.fromhex(value))
    assert encode(record) == golden
    assert decode(golden) == record


@pytest.mark.parametrize("name", GOLDEN)
def test_a_tombstone_has_the_same_key_and_no_value(name: str) -> None:
    record, key, _ = GOLDEN[name]
    gone = tombstone(record.key)
    assert gone == JournalRecord(bytes.fromhex(key), None)
    assert decode(gone) == GroupRecord(record.key, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "0000 0000000000000005 0001 6d 0000000000000009",
            OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9),
        ),
        (
            "0001 0000000000000005 0001 6d 0000000000000009 000000000000000a",
            OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9, expire_timestamp=10),
        ),
        (
            "0002 0000000000000005 0001 6d 0000000000000009",
            OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9),
        ),
        (
            "0003 0000000000000005 00000007 0001 6d 0000000000000009",
            OffsetCommitValue(offset=5, leader_epoch=7, metadata="m", commit_timestamp=9),
        ),
    ],
)
def test_offsets_of_older_brokers_are_read(value: str, expected: OffsetCommitValue) -> None:
    record = JournalRecord(bytes.fromhex(OFFSET_KEY_HEX), bytes.fromhex(value))
    assert decode(record) == GroupRecord(OFFSET_KEY, expected)


def test_an_offset_under_the_oldest_key_type_is_read_as_any_other() -> None:
    key = bytes.fromhex("0000") + bytes.fromhex(OFFSET_KEY_HEX)[2:]
    value = bytes.fromhex("0000 0000000000000005 0000 0000000000000009")
    assert decode(JournalRecord(key, value)) == GroupRecord(
        OFFSET_KEY, OffsetCommitValue(offset=5, commit_timestamp=9)
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "0000 0001 63 00000001 ffff ffff 00000001 0001 6d 0001 63 0001 68 00000002 00000000 00000000",
            {"rebalance_timeout": -1, "group_instance_id": None},
        ),
        (
            "0001 0001 63 00000001 ffff ffff 00000001 0001 6d 0001 63 0001 68 00000004 00000002 00000000"
            "00000000",
            {"rebalance_timeout": 4, "group_instance_id": None},
        ),
        (
            "0002 0001 63 00000001 ffff ffff 0000000000000003 00000001 0001 6d 0001 63 0001 68 00000004"
            "00000002 00000000 00000000",
            {"rebalance_timeout": 4, "group_instance_id": None},
        ),
        (
            "0004 02 63 00000001 00 00 0000000000000003 02 02 6d 02 69 02 63 02 68 00000004 00000002 01 01 00"
            "00",
            {"rebalance_timeout": 4, "group_instance_id": "i"},
        ),
    ],
)
def test_groups_of_other_brokers_are_read(value: str, expected: dict[str, object]) -> None:
    decoded = decode(JournalRecord(bytes.fromhex("0002 0001 67"), bytes.fromhex(value)))
    assert decoded is not None
    assert isinstance(decoded.value, GroupMetadataValue)
    member = decoded.value.members[0]
    assert (member.member_id, member.client_host, member.session_timeout) == ("m", "h", 2)
    assert {name: getattr(member, name) for name in expected} == expected


def test_a_member_without_the_field_for_classic_members_is_not_classic() -> None:
    """Kafka always writes the field, and takes a member without it for a classic one. We once left it out."""
    key = bytes.fromhex("0005 0001 67 0001 6d")
    value = bytes.fromhex("0000 00 00 02 63 02 68 01 00 00000010 00 00")
    decoded = decode(JournalRecord(key, value))
    assert decoded is not None
    assert isinstance(decoded.value, ConsumerGroupMemberMetadataValue)
    assert decoded.value.classic_member_metadata is None


def test_unknown_tagged_fields_are_skipped() -> None:
    value = bytes.fromhex("0004 0000000000000005 ffffffff 01 0000000000000009 01 05 02 abcd")
    decoded = decode(JournalRecord(bytes.fromhex(OFFSET_KEY_HEX), value))
    assert decoded == GroupRecord(OFFSET_KEY, OffsetCommitValue(offset=5, commit_timestamp=9))


@pytest.mark.parametrize("number", [9, 10, 11, 15, 17, 500, -1])
def test_types_of_other_group_kinds_are_skipped(number: int) -> None:
    record = JournalRecord(number.to_bytes(2, "big", signed=True) + b"\x00\x01g", b"\x00\x00")
    assert decode(record) is None
    assert record_type(record) == number


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", ""),
        ("00", ""),
        ("0002 0009 67", None),
        (OFFSET_KEY_HEX, "00"),
        (OFFSET_KEY_HEX, "0005 0000000000000005"),
        (OFFSET_KEY_HEX, "ffff 0000000000000005"),
        (OFFSET_KEY_HEX, "0004 0000"),
    ],
)
def test_a_malformed_record_of_a_known_type_is_an_error(key: str, value: str | None) -> None:
    record = JournalRecord(bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    with pytest.raises(KafkaError) as raised:
        decode(record)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_key_accepts_only_its_own_type_of_value() -> None:
    with pytest.raises(TypeError, match="is a OffsetCommitValue, not a GroupMetadataValue"):
        encode(GroupRecord(OFFSET_KEY, GroupMetadataValue()))


INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(max_size=20)


@given(
    st.builds(OffsetCommitKey, group=TEXT, topic=TEXT, partition=INT32),
    st.builds(
        OffsetCommitValue,
        offset=INT64,
        leader_epoch=INT32,
        metadata=TEXT,
        commit_timestamp=INT64,
        topic_id=st.binary(min_size=16, max_size=16),
    ),
)
def test_offsets_are_read_as_they_were_written(key: OffsetCommitKey, value: OffsetCommitValue) -> None:
    record = GroupRecord(key, value)
    assert decode(encode(record)) == record


MEMBERS = st.builds(
    MemberMetadata,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout=INT32,
    session_timeout=INT32,
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)


@given(
    st.builds(
        GroupMetadataValue,
        protocol_type=TEXT,
        generation=INT32,
        protocol=st.none() | TEXT,
        leader=st.none() | TEXT,
        current_state_timestamp=INT64,
        members=st.lists(MEMBERS, max_size=3),
    )
)
def test_groups_are_read_as_they_were_written(value: GroupMetadataValue) -> None:
    record = GroupRecord(GroupMetadataKey(group="g"), value)
    assert decode(encode(record)) == record
