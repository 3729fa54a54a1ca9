"""Transactions: list and describe them, abort a hanging one."""

import asyncio
from collections.abc import Collection
from functools import partial

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.admin.types import AbortTransactionSpec, TransactionDescription, TransactionListing
from barnabas.client.cluster import TRANSACTION
from barnabas.client.errors import (
    ConfigError,
    ErrorCode,
    KafkaError,
    UnsupportedVersionError,
    error_from,
    raise_for,
)
from barnabas.client.types import TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import (
    describe_transactions,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)


class TransactionAdmin(AdminBase):
    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        running_longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers: admin.list_transactions(states=["Ongoing"])."""
        request = list_transactions.ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=running_longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
        )

        async def ask(node_id: int) -> list[TransactionListing]:
            connection = await self._cluster.connection(node_id)
            _check_filters(connection, request)
            response = await connection.send(list_transactions.API_KEY, request)
            raise_for(response.error_code)
            if response.unknown_state_filters:
                unknown = ", ".join(response.unknown_state_filters)
                raise ConfigError(f"The broker does not know these transaction states: {unknown}.")
            return [
                TransactionListing(
                    state.transactional_id, state.producer_id, state.transaction_state, node_id
                )
                for state in response.transaction_states
            ]

        async def ask_all() -> list[TransactionListing]:
            answers = await asyncio.gather(*(ask(node_id) for node_id in await self._node_ids()))
            return sorted(
                (listing for answer in answers for listing in answer),
                key=lambda listing: listing.transactional_id,
            )

        async def work(call: Call) -> list[TransactionListing]:
            return await self._retry(call, ask_all)

        return self._run(timeout, work)

    def describe_transactions(
        self, transactional_ids: Collection[str], *, timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """State, producer and partitions of transactional ids."""

        async def ask(name: str, connection: BrokerConnection) -> TransactionDescription | KafkaError:
            response = await connection.send(
                describe_transactions.API_KEY,
                describe_transactions.DescribeTransactionsRequest(transactional_ids=[name]),
            )
            for state in response.transaction_states:
                if state.transactional_id == name:
                    coordinator = self._cluster.coordinator_node(TRANSACTION, name)
                    return outcome_of(
                        state.error_code, None, _description(state, coordinator.id if coordinator else -1)
                    )
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer does not contain it")

        async def attempt(left: list[str]) -> dict[str, TransactionDescription | KafkaError]:
            return {name: await self._ask_coordinator(TRANSACTION, name, partial(ask, name)) for name in left}

        async def work(call: Call) -> dict[str, TransactionDescription]:
            return await self._retry_items(call, transactional_ids, attempt)

        return self._run(timeout, work)

    def fence_producers(self, transactional_ids: Collection[str], *, timeout: float | None = None) -> None:
        """Fence the producers that use these transactional ids now; their open transactions are aborted."""

        async def ask(call: Call, name: str, connection: BrokerConnection) -> KafkaError | None:
            request = init_producer_id.InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=call.left_ms
            )
            response = await connection.send(init_producer_id.API_KEY, request)
            return outcome_of(response.error_code, None, None)

        async def attempt(call: Call, left: list[str]) -> dict[str, KafkaError | None]:
            return {
                name: await self._ask_coordinator(TRANSACTION, name, partial(ask, call, name))
                for name in left
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, transactional_ids, partial(attempt, call))

        self._run(timeout, work)

    def force_terminate_transaction(self, transactional_id: str, *, timeout: float | None = None) -> None:
        """Abort the open transaction of a transactional id; its producer is fenced."""
        self.fence_producers([transactional_id], timeout=timeout)

    def abort_transaction(self, spec: AbortTransactionSpec, *, timeout: float | None = None) -> None:
        """Abort a transaction that hangs in one partition because its coordinator no longer knows it.

        This is for repairs: a healthy transaction ends by itself, at the latest after its timeout."""

        async def ask(
            connection: BrokerConnection, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, KafkaError | None]:
            # Version 1 has all fields that are needed here.
            response = await connection.send(write_txn_markers.API_KEY, _abort_marker(spec), version_max=1)
            return {
                TopicPartition(topic.name, answer.partition_index): _aborted(answer.error_code)
                for marker in response.markers
                for topic in marker.topics
                for answer in topic.partitions
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, [spec.partition], lambda left: self._by_leader(left, ask))

        self._run(timeout, work)


def _check_filters(connection: BrokerConnection, request: list_transactions.ListTransactionsRequest) -> None:
    """Refuse a filter that the broker does not support: it would ignore it and return too much."""
    needed = 0
    if request.duration_filter >= 0:
        needed = 1
    if request.transactional_id_pattern is not None:
        needed = 2
    if not connection.supports(list_transactions.API_KEY, needed):
        raise UnsupportedVersionError(f"the broker does not support version {needed} of ListTransactions")


def _description(
    state: describe_transactions.TransactionState, coordinator_id: int
) -> TransactionDescription:
    start = state.transaction_start_time_ms
    return TransactionDescription(
        coordinator_id,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        start if start >= 0 else None,
        frozenset(
            TopicPartition(topic.topic, partition) for topic in state.topics for partition in topic.partitions
        ),
    )


def _abort_marker(spec: AbortTransactionSpec) -> write_txn_markers.WriteTxnMarkersRequest:
    topic = write_txn_markers.WritableTxnMarkerTopic(
        name=spec.partition.topic, partition_indexes=[spec.partition.partition]
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        coordinator_epoch=spec.coordinator_epoch,
        transaction_result=False,
        topics=[topic],
    )
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def _aborted(error_code: int) -> KafkaError | None:
    return error_from(error_code) if error_code else None
