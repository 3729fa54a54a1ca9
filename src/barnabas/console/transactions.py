"""Transactions: which are open, which of them hold readers back, and how to end one."""

from typing import Any

from barnabas.client.admin import (
    AbortTransactionSpec,
    AdminError,
    OffsetSpec,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.errors import KafkaError
from barnabas.client.types import TopicPartition
from barnabas.console.calls import Call
from barnabas.console.failures import bad_request, is_unavailable, not_found
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.shapes import Nullable, Text, Whole

Item = dict[str, Any]

# Only those on the page are described, and of the partitions that hold readers back the first ones.
HOLDING_MAX = 200


async def transactions(call: Call) -> Item:
    admin = call.workspace.admin
    listings = {each.transactional_id: each for each in await admin.list_transactions()}
    page = call.page_of(
        (
            {"transactional_id": id_, "state": each.state, "producer_id": each.producer_id}
            for id_, each in listings.items()
        ),
        name="transactional_id",
    )
    names = [item["transactional_id"] for item in page["items"]]
    try:
        described = await admin.describe_transactions(names)
    except AdminError as error:
        # They may have ended meanwhile, or this user must not see them.
        described = error.results
    page["items"] = [_item(listings[name], described.get(name)) for name in names]
    written = {partition for each in described.values() for partition in each.partitions}
    page["holding"] = await _holding(call, written)
    return page


def _item(listing: TransactionListing, described: TransactionDescription | None) -> Item:
    return {
        "transactional_id": listing.transactional_id,
        "producer_id": listing.producer_id,
        "producer_epoch": None if described is None else described.producer_epoch,
        "state": listing.state if described is None else described.state,
        "coordinator": listing.coordinator_id,
        "timeout_ms": None if described is None else described.timeout_ms,
        "started_ms": None if described is None else described.start_time_ms,
        "partitions": []
        if described is None
        else [{"topic": each.topic, "partition": each.partition} for each in sorted(described.partitions)],
    }


def _may_hold(
    partition: TopicPartition,
    stable: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    written: set[TopicPartition],
) -> bool:
    return partition in written or stable[partition] < ends.get(partition, 0)


async def _holding(call: Call, written: set[TopicPartition]) -> list[Item]:
    """The partitions whose last stable offset is behind, and who holds it back. This finds transactions, too,
    that no coordinator knows any more."""
    sampler = call.workspace.sampler
    await sampler.ready()
    led = [
        each.topic_partition
        for topic in sampler.metadata.topics.values()
        for each in topic.partitions
        if each.leader is not None
    ]
    # Also of topics that are newer than the last look.
    led += [each for each in written if each.topic not in sampler.metadata.topics]
    try:
        stable = await _listed(call, led, "read_committed")
        behind = [each for each in led if each in stable and _may_hold(each, stable, sampler.ends, written)]
        # The ends that were sampled are old: ask again for the partitions in question.
        ends = await _listed(call, behind[:HOLDING_MAX], "read_uncommitted")
        states = await _producers(call, list(ends))
    except KafkaError as error:
        if not is_unavailable(error):
            raise
        return []
    return [
        _held(each, stable[each], end, states.get(each, ()))
        for each, end in ends.items()
        if stable[each] < end
    ]


async def _listed(call: Call, partitions: list[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
    try:
        found = await call.workspace.admin.list_offsets(
            dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=isolation
        )
    except AdminError as error:
        found = error.results
    return {partition: listed.offset for partition, listed in found.items()}


async def _producers(
    call: Call, partitions: list[TopicPartition]
) -> dict[TopicPartition, tuple[ProducerState, ...]]:
    try:
        return await call.workspace.admin.describe_producers(partitions)
    except AdminError as error:
        return error.results


def _held(partition: TopicPartition, stable: int, end: int, states: tuple[ProducerState, ...]) -> Item:
    holders = [state for state in states if state.current_transaction_start_offset >= 0]
    holder = min(holders, key=lambda state: state.current_transaction_start_offset, default=None)
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "last_stable_offset": stable,
        "high_watermark": end,
        "producer_id": None if holder is None else holder.producer_id,
        "producer_epoch": None if holder is None else holder.producer_epoch,
        "start_offset": None if holder is None else holder.current_transaction_start_offset,
        "started_ms": None if holder is None else holder.last_timestamp,
    }


async def abort(call: Call) -> Item:
    body = call.body
    if body["transactional_id"] is not None:
        return await _terminate(call, body["transactional_id"])
    if body["topic"] is None or body["partition"] is None or body["start_offset"] is None:
        raise bad_request("Name a transactional_id, or a topic, a partition and a start_offset.")
    partition = TopicPartition(body["topic"], body["partition"])
    states = (await call.workspace.admin.describe_producers([partition]))[partition]
    found = [each for each in states if each.current_transaction_start_offset == body["start_offset"]]
    if not found:
        raise not_found(f"No open transaction begins at offset {body['start_offset']} of {partition}.")
    spec = AbortTransactionSpec(
        partition, found[0].producer_id, found[0].producer_epoch, max(found[0].coordinator_epoch, 0)
    )
    options = ("abort", "--topic", partition.topic, "--partition", str(partition.partition))
    command = call.command("transactions", *options, "--start-offset", str(body["start_offset"]))
    result = {"topic": partition.topic, "partition": partition.partition, "producer_id": spec.producer_id}
    if call.is_preview:
        return {"command": command, "preview": result}
    await call.workspace.admin.abort_transaction(spec)
    return {"command": command, **result}


async def _terminate(call: Call, name: str) -> Item:
    command = call.command("transactions", "force-terminate", "--transactional-id", name)
    # Also without a preview: to terminate an id that does not exist would create it.
    described = (await call.workspace.admin.describe_transactions([name]))[name]
    if call.is_preview:
        partitions = [str(each) for each in sorted(described.partitions)]
        preview = {"transactional_id": name, "state": described.state, "partitions": partitions}
        return {"command": command, "preview": preview}
    await call.workspace.admin.force_terminate_transaction(name)
    return {"command": command, "transactional_id": name}


ROUTES = (
    Route(
        "GET", "/api/transactions", transactions, "Transactions, and who holds readers back", query=LIST_QUERY
    ),
    Route(
        "POST",
        "/api/transactions/abort",
        abort,
        "Abort a transaction; its producer is fenced",
        body={
            "transactional_id": Nullable(Text()),
            "topic": Nullable(Text()),
            "partition": Nullable(Whole(most=2**31 - 1)),
            "start_offset": Nullable(Whole("where the transaction begins, if no coordinator knows it")),
        },
    ),
)
