"""Which open transactions hang: those that no coordinator will write a marker for."""

from collections.abc import Collection
from typing import Any

import pytest

from barnabas.cli.output import print_tabbed
from barnabas.cli.transactions import hanging
from barnabas.client.admin.types import (
    AdminError,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.types import TopicPartition
from barnabas.errors import ErrorCode, KafkaError

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


class Cluster:
    """Producer 1 has a transaction in HERE; 2 has an id that was just forgotten; nobody knows 3."""

    def list_transactions(self, *, producer_ids: Collection[int]) -> list[TransactionListing]:
        assert set(producer_ids) == {1, 2, 3}
        return [TransactionListing("one", 1, "Ongoing"), TransactionListing("two", 2, "Dead")]

    def describe_transactions(self, names: Collection[str]) -> dict[str, TransactionDescription]:
        assert list(names) == ["one", "two"]
        described = TransactionDescription(1, "Ongoing", 1, 0, 60_000, 5, frozenset({HERE}))
        error = KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        raise AdminError({"two": error}, {"one": described})


def opened(partition: TopicPartition, producer_id: int) -> hanging.OpenTransaction:
    return hanging.OpenTransaction(partition, ProducerState(producer_id, 0, 0, 1_000, -1, 7))


def test_transactions_that_no_coordinator_will_end() -> None:
    cluster: Any = Cluster()
    candidates = [opened(HERE, 1), opened(THERE, 1), opened(HERE, 2), opened(HERE, 3)]
    assert hanging._hanging(cluster, candidates) == candidates[1:]


def test_a_table_has_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_tabbed(("A", "Longer"), [("cell", None)])
    assert capsys.readouterr().out == "A   \tLonger\t\ncell\tNone  \t\n"
