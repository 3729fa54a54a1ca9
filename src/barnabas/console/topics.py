"""Topics: the list, one topic, and the changes of topics."""

import json
import shlex
from typing import Any

from barnabas.client.admin import AdminError, NewTopic, OffsetSpec
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.metadata import TopicMetadata
from barnabas.client.types import TopicDescription, TopicPartition
from barnabas.console.calls import Call
from barnabas.console.failures import is_unavailable
from barnabas.console.overview import is_under_replicated
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.sampling import Sampler
from barnabas.console.shapes import Choice, Flag, MapOf, Text, Whole
from barnabas.ids import uuid_to_string

Item = dict[str, Any]

PARTITIONS_MAX = 100_000


async def topics(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    known = sampler.metadata.topics
    with_internal, problem = call.query["internal"], call.query["problem"]
    names = [name for name, topic in known.items() if with_internal or not topic.is_internal]
    if problem:
        names = [name for name in names if _has_problem(sampler, name, problem)]
    stale = sampler.stale_since_ms
    if call.query["sort"] in ("", "name"):
        # Only the topics on the page are looked at.
        page = call.page_of(({"name": name} for name in names), stale_since_ms=stale)
        page["items"] = [topic_item(sampler, known[item["name"]]) for item in page["items"]]
        return page
    return call.page_of((topic_item(sampler, known[name]) for name in names), stale_since_ms=stale)


def topic_item(sampler: Sampler, topic: TopicMetadata) -> Item:
    partitions = [partition.topic_partition for partition in topic.partitions]
    sizes = [sampler.sizes[each] for each in partitions if each in sampler.sizes]
    return {
        "name": topic.name,
        "id": uuid_to_string(topic.id),
        "partitions": len(topic.partitions),
        "replication": max((len(each.replicas) for each in topic.partitions), default=0),
        "size_bytes": sum(sizes) if len(sizes) == len(partitions) else None,
        "messages": _messages(sampler, partitions),
        "messages_per_second": sampler.messages.last(topic.name),
        "under_replicated": sum(map(is_under_replicated, topic.partitions)),
        "offline": sum(each.leader is None for each in topic.partitions),
        "internal": topic.is_internal,
        "cleanup_policy": sampler.topic_configs.get(topic.name, {}).get("cleanup.policy"),
    }


def _messages(sampler: Sampler, partitions: list[TopicPartition]) -> int | None:
    """By offsets: compaction and transaction markers make it too large."""
    if not all(each in sampler.ends for each in partitions):
        return None
    return sum(
        sampler.ends[each] - min(sampler.starts.get(each, 0), sampler.ends[each]) for each in partitions
    )


def _has_problem(sampler: Sampler, name: str, problem: str) -> bool:
    least = sampler.min_in_sync(name)
    for partition in sampler.metadata.topics[name].partitions:
        in_sync = len(partition.in_sync_replicas)
        found = {
            "offline": partition.leader is None,
            "under_replicated": is_under_replicated(partition),
            "under_min_isr": in_sync < least,
            "at_min_isr": in_sync == least < len(partition.replicas),
        }
        if found[problem]:
            return True
    return False


async def topic(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    name = call.path["topic"]
    known = sampler.topic(name)
    if sampler.problem is not None and known is not None:
        return _last_known(sampler, known)
    try:
        described = (await call.workspace.admin.describe_topics([name]))[name]
    except KafkaError as error:
        if known is None or not is_unavailable(error):
            raise
        return _last_known(sampler, known)
    partitions = [TopicPartition(name, each.partition) for each in described.partitions if each.leader]
    admin = call.workspace.admin
    starts = await _offsets(admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST)))
    ends = await _offsets(admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)))
    known = await sampler.found_topic(name)
    item = _only_described(described) if known is None else topic_item(sampler, known)
    rows = [
        _partition(sampler, described, number, starts, ends) for number in range(len(described.partitions))
    ]
    if all(row["end"] is not None for row in rows):
        item["messages"] = sum(row["end"] - row["start"] for row in rows)
    return item | {"partitions": rows, "stale_since_ms": None}


async def _offsets(asked: Any) -> dict[TopicPartition, int]:
    try:
        found = await asked
    except AdminError as error:
        found = error.results
    except KafkaError as error:
        if not is_unavailable(error):
            raise
        found = {}
    return {partition: listed.offset for partition, listed in found.items()}


def _partition(
    sampler: Sampler,
    described: TopicDescription,
    number: int,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> Item:
    info = described.partitions[number]
    partition = TopicPartition(described.name, info.partition)
    eligible = info.eligible_leader_replicas
    end = ends.get(partition, sampler.ends.get(partition))
    start = starts.get(partition, sampler.starts.get(partition))
    return {
        "index": info.partition,
        "leader": None if info.leader is None else info.leader.id,
        "leader_epoch": info.leader_epoch,
        "replicas": [node.id for node in info.replicas],
        "isr": [node.id for node in info.in_sync_replicas],
        "elr": [] if eligible is None else [node.id for node in eligible],
        "start": start,
        "end": end if start is None or end is None else max(start, end),
        "size_bytes": sampler.sizes.get(partition),
    }


def _only_described(described: TopicDescription) -> Item:
    return {"name": described.name, "id": uuid_to_string(described.topic_id)}


def _last_known(sampler: Sampler, known: TopicMetadata) -> Item:
    rows = [
        {
            "index": each.partition,
            "leader": None if each.leader is None else each.leader.id,
            "leader_epoch": each.leader_epoch,
            "replicas": [node.id for node in each.replicas],
            "isr": [node.id for node in each.in_sync_replicas],
            "elr": [],
            "start": sampler.starts.get(each.topic_partition),
            "end": sampler.ends.get(each.topic_partition),
            "size_bytes": sampler.sizes.get(each.topic_partition),
        }
        for each in known.partitions
    ]
    return topic_item(sampler, known) | {"partitions": rows, "stale_since_ms": sampler.stale_since_ms}


# ---- changes


async def create(call: Call) -> Item:
    body = call.body
    options = ["--create", "--topic", body["name"]]
    for name in ("partitions", "replication"):
        if body[name] != -1:
            flag = "--partitions" if name == "partitions" else "--replication-factor"
            options += [flag, str(body[name])]
    for key, value in body["configs"].items():
        options += ["--config", f"{key}={value}"]
    new = NewTopic(body["name"], body["partitions"], body["replication"], body["configs"])
    created = await call.workspace.admin.create_topics([new], validate_only=call.is_preview)
    made = created[new.name]
    if not call.is_preview:
        await call.workspace.sampler.refresh_topics()
    result = {"name": new.name, "partitions": made.partitions, "replication": made.replication_factor}
    return _answer(call, call.command("topics", *options), result)


async def grow(call: Call) -> Item:
    name, count = call.path["topic"], call.body["count"]
    await call.workspace.admin.create_partitions({name: count}, validate_only=call.is_preview)
    if not call.is_preview:
        await call.workspace.sampler.refresh_topics()
    command = call.command("topics", "--alter", "--topic", name, "--partitions", str(count))
    return _answer(call, command, {"name": name, "partitions": count})


async def empty(call: Call) -> Item:
    name = call.path["topic"]
    call.check_confirmed(name)
    admin = call.workspace.admin
    described = (await admin.describe_topics([name]))[name]
    partitions = [TopicPartition(name, each.partition) for each in described.partitions]
    starts = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    rows = [
        {"partition": each.partition, "from": starts[each].offset, "to": ends[each].offset}
        for each in partitions
    ]
    if not call.is_preview:
        await admin.delete_records({each: ends[each].offset for each in partitions})
    offsets = {
        "partitions": [{"topic": name, "partition": row["partition"], "offset": row["to"]} for row in rows],
        "version": 1,
    }
    command = call.command("delete-records", "--offset-json-file", "/dev/stdin")
    command = f"echo {shlex.quote(json.dumps(offsets))} | {command}"
    return _answer(call, command, {"name": name, "partitions": rows})


async def delete(call: Call) -> Item:
    name = call.path["topic"]
    call.check_confirmed(name)
    if call.is_preview:
        described = (await call.workspace.admin.describe_topics([name]))[name]
        result = {"name": name, "partitions": len(described.partitions)}
    else:
        result = {"name": name}
        await call.workspace.admin.delete_topics([name])
        await call.workspace.sampler.refresh_topics()
    return _answer(call, call.command("topics", "--delete", "--topic", name), result)


def _answer(call: Call, command: str, result: Item) -> Item:
    return {"command": command, "preview": result} if call.is_preview else {"command": command, **result}


async def groups_of_topic(call: Call) -> Item:
    """The groups that have offsets of the topic, with their lag there."""
    sampler = call.workspace.sampler
    await sampler.ready()
    await sampler.groups.ready()
    name = call.path["topic"]
    if await sampler.found_topic(name) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    items = []
    for id_, state in sampler.groups.states.items():
        own = {each: at.offset for each, at in state.offsets.items() if each.topic == name}
        if own:
            lags = [max(0, sampler.ends[each] - at) for each, at in own.items() if each in sampler.ends]
            kind, shown = state.listing.type or "classic", state.listing.state
            items.append({"id": id_, "type": kind, "state": shown, "partitions": len(own), "lag": sum(lags)})
    return call.page_of(items, stale_since_ms=sampler.groups.stale_since_ms, name="id")


_CONFIRM = {"confirm": Text("the name of the topic again", default="")}

ROUTES = (
    Route(
        "GET",
        "/api/topics",
        topics,
        "The topics",
        query={
            **LIST_QUERY,
            "internal": Flag("also internal topics"),
            "problem": Choice(
                "offline", "under_replicated", "under_min_isr", "at_min_isr", doc="only with it", default=""
            ),
        },
    ),
    Route(
        "POST",
        "/api/topics",
        create,
        "Create a topic",
        body={
            "name": Text("the name"),
            "partitions": Whole("-1 means the default", default=-1, least=-1, most=PARTITIONS_MAX),
            "replication": Whole("-1 means the default", default=-1, least=-1, most=1000),
            "configs": MapOf(Text(longest=100_000), default={}),
        },
    ),
    Route("GET", "/api/topics/{topic}", topic, "One topic and its partitions"),
    Route("DELETE", "/api/topics/{topic}", delete, "Delete a topic with its messages", body=_CONFIRM),
    Route(
        "POST",
        "/api/topics/{topic}/partitions",
        grow,
        "Add partitions",
        body={"count": Whole("the new number of partitions", least=1, most=PARTITIONS_MAX)},
    ),
    Route("POST", "/api/topics/{topic}/empty", empty, "Delete all messages of a topic", body=_CONFIRM),
    Route(
        "GET", "/api/topics/{topic}/groups", groups_of_topic, "Groups that read the topic", query=LIST_QUERY
    ),
)
