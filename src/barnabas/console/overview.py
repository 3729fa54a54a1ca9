"""The cluster at a glance: brokers, health, rates, and a stream of what happens."""

from collections import Counter
from typing import Any

from starlette.responses import Response

from barnabas.client.types import PartitionInfo
from barnabas.console.answers import Events, queued
from barnabas.console.broadcasting import END
from barnabas.console.calls import Call
from barnabas.console.failures import api_error
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.sampling import CLUSTER, Sampler
from barnabas.console.shapes import Choice, Text

Item = dict[str, Any]


async def overview(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    counts = cluster_counts(sampler)
    return {
        "cluster_id": sampler.metadata.cluster_id,
        "controller_id": _controller(sampler),
        "brokers": broker_items(sampler),
        "counts": counts,
        "health": _health(sampler, counts),
        "messages_per_second": sampler.messages.last(CLUSTER),
        "bytes_per_second": sampler.bytes.last(CLUSTER),
        "stale_since_ms": sampler.stale_since_ms,
    }


async def series(call: Call) -> Item:
    sampler = call.workspace.sampler
    rates = sampler.messages if call.query["name"] == "messages" else sampler.bytes
    return {"points": rates.points(call.query["topic"] or CLUSTER)}


async def events(call: Call) -> Response:
    return call.streams.response(_events(call.workspace.sampler))


async def _events(sampler: Sampler) -> Events:
    async with sampler.events.listening() as queue:
        while (event := await queued(queue)) is None or event[0] != END:
            yield event


async def brokers(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    return call.page_of(broker_items(sampler), stale_since_ms=sampler.stale_since_ms, name="id")


def broker_items(sampler: Sampler) -> list[Item]:
    """All brokers that were seen since the start, also those that are gone."""
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for topic in sampler.metadata.topics.values():
        for partition in topic.partitions:
            leaders[-1 if partition.leader is None else partition.leader.id] += 1
            replicas.update(node.id for node in partition.replicas)
    known = sorted({*sampler.brokers, *replicas})
    return [broker_item(sampler, id_) | {"leaders": leaders[id_], "replicas": replicas[id_]} for id_ in known]


def broker_item(sampler: Sampler, id_: int) -> Item:
    node = sampler.brokers.get(id_)
    directories = sampler.log_dirs.get(id_)
    size = None
    if directories is not None:
        size = sum(info.size for each in directories.values() for info in each.replicas.values())
    return {
        "id": id_,
        "host": None if node is None else node.host,
        "port": None if node is None else node.port,
        "rack": None if node is None else node.rack,
        "alive": sampler.is_alive(id_),
        "is_controller": id_ == sampler.metadata.controller_id,
        "size_bytes": size,
    }


def _controller(sampler: Sampler) -> int | None:
    return sampler.metadata.controller_id if sampler.metadata.controller_id >= 0 else None


def is_under_replicated(partition: PartitionInfo) -> bool:
    return len(partition.in_sync_replicas) < len(partition.replicas)


def cluster_counts(sampler: Sampler) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for topic in sampler.metadata.topics.values():
        counts["topics"] += 1
        least = sampler.min_in_sync(topic.name)
        for partition in topic.partitions:
            in_sync = len(partition.in_sync_replicas)
            counts["partitions"] += 1
            counts["offline"] += partition.leader is None
            counts["under_replicated"] += is_under_replicated(partition)
            counts["under_min_isr"] += in_sync < least
            counts["at_min_isr"] += in_sync == least < len(partition.replicas)
    counts["groups"] = len(sampler.groups.states)
    names = ("topics", "partitions", "under_replicated", "offline", "at_min_isr", "under_min_isr", "groups")
    return {name: counts[name] for name in names}


def _health(sampler: Sampler, counts: dict[str, int]) -> list[Item]:
    found = [*_broker_health(sampler), *_partition_health(counts)]
    return found or [_line("ok", "All brokers answer, and all replicas are in sync.", None)]


def _broker_health(sampler: Sampler) -> list[Item]:
    lines = []
    if sampler.problem is not None:
        lines.append(_line("error", f"No broker answers: {api_error(sampler.problem).message}", "/brokers"))
        return lines
    for id_ in sorted(sampler.brokers.keys() - sampler.metadata.nodes.keys()):
        lines.append(_line("error", f"Broker {id_} is gone.", f"/brokers/{id_}"))
    if _controller(sampler) is None:
        lines.append(_line("error", "The cluster has no controller.", "/brokers"))
    for id_, directories in sampler.log_dirs.items():
        failed = [path for path, each in directories.items() if each.error is not None]
        if failed and sampler.is_alive(id_):
            lines.append(
                _line(
                    "error",
                    f"Log directories of broker {id_} have failed: {', '.join(failed)}.",
                    f"/brokers/{id_}",
                )
            )
    return lines


def _partition_health(counts: dict[str, int]) -> list[Item]:
    rows = (
        ("offline", "error", "{} have no leader."),
        ("under_min_isr", "error", "{} have fewer replicas in sync than min.insync.replicas: writes fail."),
        ("under_replicated", "warning", "{} have replicas that are not in sync."),
        ("at_min_isr", "warning", "{} have just as many replicas in sync as writes need."),
    )
    lines = []
    for name, severity, text in rows:
        if counts[name]:
            what = "1 partition" if counts[name] == 1 else f"{counts[name]} partitions"
            sentence = text.format(what).replace("1 partition have", "1 partition has")
            lines.append(_line(severity, sentence, f"/topics?problem={name}"))
    return lines


def _line(severity: str, text: str, link: str | None) -> Item:
    return {"severity": severity, "text": text, "link": link}


ROUTES = (
    Route("GET", "/api/overview", overview, "Brokers, counts and health of the cluster"),
    Route("GET", "/api/brokers", brokers, "The brokers", query=LIST_QUERY),
    Route(
        "GET",
        "/api/series",
        series,
        "Rates of the last half hour",
        query={
            "name": Choice("messages", "bytes", default="messages"),
            "topic": Text("of this topic; without it, of the cluster", default=""),
        },
    ),
    Route(
        "GET", "/api/events", events, "Rates and changes of the cluster as they happen (server-sent events)"
    ),
)
