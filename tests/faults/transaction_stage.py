"""What tests of transaction faults share: reading partitions over a raw connection, and cutting the logs of a
broker as if it had died between two writes.

This module has no tests and uses no client library."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.clients.client import wait_until
from tests.support.raw_calls import FETCH, LIST_OFFSETS, Topic, fetch_request, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import OLD, RawTransactional

from barnabas.records.batch import iter_headers
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.list_transactions import ListTransactionsRequest

DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
READ_COMMITTED = 1
EARLIEST = -2
# Apache Kafka takes the same ones.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
}


def connected(bootstrap: str) -> RawClient:
    host, _, port = bootstrap.rpartition(":")
    return RawClient(host, int(port))


# ---- partitions


class Ends(NamedTuple):
    """The last stable offset and the high watermark of a partition."""

    stable: int
    high: int

    @property
    def hangs(self) -> bool:
        return self.stable < self.high


def fetched(
    client: RawClient, topic: Topic, partition: int = 0, offset: int = 0, *, bytes_max: int = 1 << 20
) -> Any:
    """The answer for one partition to a fetch with read_committed."""
    request = fetch_request(topic, offset, partition=partition, partition_max_bytes=bytes_max)
    request.isolation_level = READ_COMMITTED
    return client.call(FETCH, 12, request).responses[0].partitions[0]


def ends(client: RawClient, topic: Topic, partition: int = 0) -> Ends:
    # The records are not needed: one batch is the minimum.
    part = fetched(client, topic, partition, log_start(client, topic, partition), bytes_max=1)
    return Ends(part.last_stable_offset, part.high_watermark)


def aborted(client: RawClient, topic: Topic, partition: int = 0, offset: int = 0) -> list[tuple[int, int]]:
    """(producer id, first offset) of the aborted transactions."""
    transactions = fetched(client, topic, partition, offset).aborted_transactions
    return sorted((each.producer_id, each.first_offset) for each in transactions or ())


def log_start(client: RawClient, topic: Topic, partition: int = 0) -> int:
    part = ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic.name, partitions=[part])])
    return int(client.call(LIST_OFFSETS, 7, request).topics[0].partitions[0].offset)


def settled_topic(client: RawClient, partitions: int = 1, **configs: str) -> Topic:
    """A new topic whose leaders answer: Kafka lists a topic before they do."""
    topic = new_topic(client, partitions, **configs)
    wait_until(
        lambda: not any(fetched(client, topic, number).error_code for number in range(partitions)),
        "the new topic has leaders",
    )
    return topic


def wait_until_nothing_hangs(client: RawClient, topic: Topic, partitions: int = 1) -> list[Ends]:
    def open_ends() -> list[Ends]:
        return [ends(client, topic, number) for number in range(partitions)]

    wait_until(
        lambda: not any(each.hangs for each in open_ends()), f"the transactions of {topic.name} have ended"
    )
    return open_ends()


# ---- transactions


def state_of(client: RawClient, transactional_id: str) -> str:
    """The state in DescribeTransactions, or its error code."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (state,) = client.call(DESCRIBE_TRANSACTIONS, 0, request).transaction_states
    return str(state.transaction_state) if not state.error_code else f"error {state.error_code}"


def listed(client: RawClient, *states: str) -> set[str]:
    request = ListTransactionsRequest(state_filters=list(states))
    answer = client.call(LIST_TRANSACTIONS, 1, request)
    return {each.transactional_id for each in answer.transaction_states}


def wait_for_state(client: RawClient, transactional_id: str, state: str) -> None:
    wait_until(lambda: state_of(client, transactional_id) == state, f"{transactional_id} is {state}", 40)


def write(producer: RawTransactional, topic: Topic, value: bytes, partitions: Iterable[int] = (0,)) -> None:
    """Write one record to each partition, as the producer's version requires."""
    for partition in partitions:
        if producer.transaction_version == OLD:
            assert producer.add(topic, partition) == 0
        assert producer.produce(topic, value, partition) == 0


# ---- the disk


def cut_last_batches(data_dir: Path, partition: str, count: int = 1) -> None:
    """Cut the log of `topic-number` as if the broker had been killed before the last `count` appends."""
    (path,) = (data_dir / partition).glob("*.log")
    positions = [position for position, _ in iter_headers(path.read_bytes())]
    with path.open("r+b") as file:
        file.truncate(positions[-count])
