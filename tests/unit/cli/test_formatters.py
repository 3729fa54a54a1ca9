"""How the console consumer prints a record."""

import json
import struct
import uuid

import pytest

from barnabas.cli.console_consumer.formatters import formatter_of, json_line
from barnabas.cli.failures import ToolError
from barnabas.client.errors import SerializationError
from barnabas.coordination.step import JournalRecord
from barnabas.errors import KafkaError
from barnabas.groups import record_schemas as schemas
from barnabas.groups.records import GroupRecord, encode
from barnabas.ids import TopicPartition
from barnabas.kernels.record_decode import ConsumerRecord
from barnabas.transactions import records as transaction_records
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import State

RECORD = ConsumerRecord(
    "orders",
    2,
    17,
    b"key",
    b"value",
    headers=[("a", b"1"), ("b", None)],
    timestamp=1_700_000_000_000,
    leader_epoch=3,
)


def shown(record: ConsumerRecord = RECORD, name: str | None = None, **properties: str) -> bytes | None:
    return formatter_of(name, {key.replace("_", "."): value for key, value in properties.items()})(record)


def test_the_value_alone_by_default() -> None:
    assert shown() == b"value\n"
    assert shown(ConsumerRecord("orders", 0, 0, None, None)) == b"null\n"


def test_all_parts_are_in_kafkas_order() -> None:
    parts = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
    everything = {f"print_{part}": "true" for part in parts}
    assert shown(**everything) == (
        b"CreateTime:1700000000000\tPartition:2\tOffset:17\tDelivery:NOT_PRESENT\tEpoch:3\ta:1,b:null\tkey\tvalue\n"
    )
    bare = ConsumerRecord("orders", 0, 0, None, b"v", timestamp_type=1, timestamp=5)
    assert shown(bare, **everything) == (
        b"LogAppendTime:5\tPartition:0\tOffset:0\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tv\n"
    )


def test_separators_and_the_null_literal() -> None:
    assert (
        shown(
            print_headers="true",
            print_key="true",
            headers_separator=";",
            key_separator=" | ",
            line_separator="<end>",
            null_literal="nothing",
        )
        == b"a:1;b:nothing | key | value<end>"
    )


def test_without_the_value() -> None:
    assert shown(print_value="false", print_key="true") == b"key\n"
    assert shown(print_value="false") is None


def test_bytes_are_not_changed() -> None:
    assert shown(ConsumerRecord("t", 0, 0, b"\xff\x00", b"\x80\n\x00"), print_key="true") == (
        b"\xff\x00\t\x80\n\x00\n"
    )


@pytest.mark.parametrize(
    "kind, data, text",
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", struct.pack(">q", -7), b"-7"),
        ("IntegerDeserializer", struct.pack(">i", 42), b"42"),
        ("ShortDeserializer", struct.pack(">h", 42), b"42"),
        ("DoubleDeserializer", struct.pack(">d", 2.5), b"2.5"),
        ("FloatDeserializer", struct.pack(">f", 0.5), b"0.5"),
        ("BooleanDeserializer", b"\x01", b"true"),
        ("StringDeserializer", b"text", b"text"),
        ("UUIDDeserializer", str(uuid.UUID(int=5)).encode(), str(uuid.UUID(int=5)).encode()),
    ],
)
def test_deserializers_of_kafka(kind: str, data: bytes, text: bytes) -> None:
    record = ConsumerRecord("t", 0, 0, None, data)
    assert shown(record, value_deserializer=kind) == text + b"\n"


def test_a_value_that_does_not_fit_its_deserializer() -> None:
    with pytest.raises(SerializationError, match="LongDeserializer needs 8 bytes, got 5"):
        shown(value_deserializer="LongDeserializer")


def test_unknown_classes_are_explained() -> None:
    with pytest.raises(ToolError, match=r"com\.example\.Mine: Java classes cannot be run here"):
        formatter_of("com.example.Mine", {})
    with pytest.raises(ToolError, match=r"value\.deserializer=com\.example\.Mine"):
        formatter_of(None, {"value.deserializer": "com.example.Mine"})


def test_the_no_op_and_logging_formatters(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(name="org.apache.kafka.tools.consumer.NoOpMessageFormatter") is None
    assert shown(name="kafka.tools.LoggingMessageFormatter") == b"value\n"
    assert "CreateTime:1700000000000, key:key, value:value" in capsys.readouterr().err


def test_json_is_one_object_on_a_line() -> None:
    line = json_line(
        ConsumerRecord("t", 1, 2, b"\xff", "grün\n".encode(), headers=[("h", b"1"), ("n", None)])
    )
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": -1,
        "timestampType": "CreateTime",
        "leaderEpoch": None,
        "headers": [{"key": "h", "value": "1"}, {"key": "n", "value": None}],
        "key": {"base64": "/w=="},
        "value": "grün\n",
    }


# ---- internal topics

OFFSETS = r"kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
GROUPS = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"
TRANSACTIONS = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"


def of_journal(journaled: JournalRecord) -> ConsumerRecord:
    return ConsumerRecord("__consumer_offsets", 0, 9, journaled.key, journaled.value)


def test_a_committed_offset() -> None:
    key = schemas.OffsetCommitKey(group="g", topic="t", partition=1)
    value = schemas.OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=77)
    record = of_journal(encode(GroupRecord(key, value)))
    line = shown(record, OFFSETS)
    assert line == (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":1}},'
        b'"value":{"version":4,"data":{"offset":5,"leaderEpoch":2,"metadata":"m","commitTimestamp":77}}}\n'
    )
    assert shown(record, GROUPS) is None


def test_a_deleted_offset() -> None:
    record = of_journal(encode(GroupRecord(schemas.OffsetCommitKey(group="g", topic="t"), None)))
    line = shown(record, OFFSETS)
    assert line is not None and json.loads(line)["value"] is None


def test_a_classic_group() -> None:
    member = schemas.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=1, subscription=b"\x00\xff"
    )
    value = schemas.GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    record = of_journal(encode(GroupRecord(schemas.GroupMetadataKey(group="g"), value)))
    line = shown(record, GROUPS)
    assert line is not None
    assert json.loads(line) == {
        "key": {"type": 2, "data": {"group": "g"}},
        "value": {
            "version": 3,
            "data": {
                "protocolType": "consumer",
                "generation": 3,
                "protocol": "range",
                "leader": "m",
                "currentStateTimestamp": -1,
                "members": [
                    {
                        "memberId": "m",
                        "groupInstanceId": None,
                        "clientId": "c",
                        "clientHost": "/h",
                        "rebalanceTimeout": -1,
                        "sessionTimeout": 1,
                        "subscription": "AP8=",
                        "assignment": "",
                    }
                ],
            },
        },
    }
    assert shown(record, OFFSETS) is None


def test_a_transaction() -> None:
    transaction = Transaction(
        producer_id=7,
        timeout_ms=60_000,
        update_ms=11,
        epoch=2,
        state=State.ONGOING,
        partitions=frozenset({TopicPartition("t", 0), TopicPartition("t", 3)}),
        start_ms=10,
        client_version=2,
    )
    line = shown(of_journal(transaction_records.encode("tx", transaction, 2)), TRANSACTIONS)
    assert line is not None
    assert json.loads(line) == {
        "key": {"type": 0, "data": {"transactionalId": "tx"}},
        "value": {
            "version": 1,
            "data": {
                "producerId": 7,
                "producerEpoch": 2,
                "transactionTimeoutMs": 60_000,
                "transactionStatus": 1,
                "transactionPartitions": [{"topic": "t", "partitionIds": [0, 3]}],
                "transactionLastUpdateTimestampMs": 11,
                "transactionStartTimestampMs": 10,
                "clientTransactionVersion": 2,
            },
        },
    }


def test_a_record_of_another_topic() -> None:
    with pytest.raises(KafkaError, match="offset 9 due to: its key has no type"):
        shown(of_journal(JournalRecord(b"x", None)), OFFSETS)
