"""One broker: its log directories, and what is in them."""

from typing import Any

from barnabas.client.admin import LogDirDescription
from barnabas.client.errors import KafkaError
from barnabas.console.calls import Call
from barnabas.console.failures import bad_request, is_unavailable, not_found
from barnabas.console.overview import broker_items
from barnabas.console.routing import Route

Item = dict[str, Any]

REPLICAS_MAX = 1000
"""The largest ones are listed; a broker may have many thousands."""


async def broker(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    if not call.path["id"].isdecimal():
        raise bad_request("The id of a broker is a number.")
    id_ = int(call.path["id"])
    items = [item for item in broker_items(sampler) if item["id"] == id_]
    if not items:
        raise not_found(f"The cluster has no broker {id_}.")
    directories = sampler.log_dirs.get(id_, {})
    stale_since_ms = sampler.stale_since_ms
    if sampler.is_alive(id_):
        try:
            directories = (await call.workspace.admin.describe_log_dirs([id_]))[id_]
        except KafkaError as error:
            if not is_unavailable(error):
                raise
    return items[0] | {
        "log_dirs": [_directory(path, each) for path, each in sorted(directories.items())],
        "stale_since_ms": stale_since_ms,
    }


def _directory(path: str, directory: LogDirDescription) -> Item:
    largest = sorted(directory.replicas.items(), key=lambda item: -item[1].size)[:REPLICAS_MAX]
    return {
        "path": path,
        "error": None if directory.error is None else directory.error.message,
        "size_bytes": sum(info.size for info in directory.replicas.values()),
        "total_bytes": directory.total_bytes if directory.total_bytes >= 0 else None,
        "usable_bytes": directory.usable_bytes if directory.usable_bytes >= 0 else None,
        "replicas": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "size_bytes": info.size,
                "lag": info.offset_lag,
                "is_future": info.is_future,
            }
            for partition, info in largest
        ],
        "replica_count": len(directory.replicas),
    }


ROUTES = (Route("GET", "/api/brokers/{id}", broker, "One broker and its log directories"),)
