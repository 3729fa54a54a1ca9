"""Transaction records are Kafka's, byte for byte: the hexadecimal values come from Kafka 4.3.1's own code."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.step import JournalRecord
from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.records import Entry, decode, encode, tombstone
from barnabas.transactions.states import State

ORDERS = frozenset({TopicPartition("orders", 3)})
EMPTY = Transaction(4000, 60000, 1000, 0, State.EMPTY, 4000)
PREPARED = Transaction(4000, 60000, 1000, 32767, State.PREPARE_COMMIT, 3999, 4001, ORDERS, 900, 2)
COMPLETE = Transaction(4001, 60000, 1001, 0, State.COMPLETE_COMMIT, 4000, -1, frozenset(), 900, 2)


def test_a_key_is_its_type_and_the_id() -> None:
    assert encode("tx-ü", EMPTY, 2).key.hex() == "0000000574782dc3bc"


@pytest.mark.parametrize(
    ("transaction", "level", "expected"),
    [
        (EMPTY, 0, "00000000000000000fa000000000ea6000ffffffff00000000000003e8ffffffffffffffff"),
        (
            EMPTY,
            1,
            "00010000000000000fa000000000ea60000000000000000003e8ffffffffffffffff0100080000000000000fa0",
        ),
        (
            PREPARED,
            2,
            "00010000000000000fa07fff0000ea600202076f726465727302000000030000000000000003e80000000000000384"
            "0300080000000000000f9f01080000000000000fa102020002",
        ),
        (
            COMPLETE,
            2,
            "00010000000000000fa100000000ea60040100000000000003e900000000000003840200080000000000000fa0"
            "02020002",
        ),
    ],
)
def test_values_are_those_of_kafka(transaction: Transaction, level: int, expected: str) -> None:
    value = encode("x", transaction, level).value
    assert value is not None
    assert value.hex() == expected


def test_version_0_has_only_the_current_id_and_no_client_version() -> None:
    old = Transaction(4000, 60000, 1000, 7, State.PREPARE_COMMIT, 3999, -1, ORDERS, 900, 0)
    record = encode("x", old, 0)
    assert record.value is not None
    assert record.value.hex() == (
        "00000000000000000fa000070000ea60020000000100066f7264657273000000010000000300000000000003e8"
        "0000000000000384"
    )
    assert decode(record) == Entry("x", Transaction(4000, 60000, 1000, 7, old.state, -1, -1, ORDERS, 900, 0))


def test_fields_of_version_1_are_never_written_in_version_0() -> None:
    assert decode(encode("x", PREPARED, 0)) == Entry("x", PREPARED)


def test_an_unused_field_of_kafka_is_ignored() -> None:
    with_next_epoch = (
        "000100000000000000000000000000000000000000000000000000000000000000000400080000000000000001010800000000"
        "000000020202000203020007"
    )
    entry = decode(JournalRecord(tombstone("x").key, bytes.fromhex(with_next_epoch)))
    assert entry is not None and entry.transaction is not None
    assert (entry.transaction.previous_producer_id, entry.transaction.next_producer_id) == (1, 2)


def test_a_null_value_removes_the_id() -> None:
    assert decode(tombstone("x")) == Entry("x", None)


def test_unknown_records_are_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert decode(JournalRecord(b"\0\1\0\1x", b"")) is None
        assert decode(JournalRecord(tombstone("x").key, b"\0\2")) is None
    assert len(caplog.records) == 2


def test_an_unknown_state_is_not_skipped() -> None:
    record = encode("x", COMPLETE, 2)
    assert record.value is not None
    damaged = record.value.replace(b"\0\0\xea\x60\4", b"\0\0\xea\x60\x63")
    with pytest.raises(ValueError, match="99"):
        decode(JournalRecord(record.key, damaged))


@given(
    transaction=st.builds(
        Transaction,
        producer_id=st.integers(0, 2**63 - 1),
        timeout_ms=st.integers(1, 2**31 - 1),
        update_ms=st.integers(0, 2**63 - 1),
        epoch=st.integers(0, 2**15 - 1),
        state=st.sampled_from([state for state in State if state is not State.EMPTY]),
        previous_producer_id=st.integers(-1, 2**63 - 1),
        next_producer_id=st.integers(-1, 2**63 - 1),
        partitions=st.frozensets(
            st.builds(TopicPartition, st.sampled_from(["a", "b.c", "__consumer_offsets"]), st.integers(0, 99))
        ),
        start_ms=st.integers(-1, 2**63 - 1),
        client_version=st.integers(0, 2),
    ),
    transactional_id=st.text(min_size=1, max_size=20),
)
def test_what_is_written_is_read(transaction: Transaction, transactional_id: str) -> None:
    assert decode(encode(transactional_id, transaction, 2)) == Entry(transactional_id, transaction)
