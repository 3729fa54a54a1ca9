"""Clients of a cluster and options of the data source, from one set of settings."""

import json
from collections.abc import Iterable, Mapping

from barnabas.client import Admin
from barnabas.client.admin.types import ConfigResource, ConfigResourceType
from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.spark.brokers import Brokers, brokers_of


class JobError(Exception):
    """A job cannot be done; the text says why and what to do."""


def admin_of(client: Mapping[str, str]) -> Admin:
    return Admin({name: value for name, value in client.items() if name in ADMIN_KEYS})


def cluster_of(client: Mapping[str, str]) -> Brokers:
    """The brokers, for lookups and fetches; one object per process."""
    return brokers_of({name: value for name, value in client.items() if name in CONSUMER_KEYS})


def source_options(client: Mapping[str, str]) -> dict[str, str]:
    """Options of `format("barnabas")` for reading."""
    return {f"kafka.{name}": value for name, value in client.items() if name in CONSUMER_KEYS}


def sink_options(client: Mapping[str, str]) -> dict[str, str]:
    """Options of `format("barnabas")` for writing."""
    return {f"kafka.{name}": value for name, value in client.items() if name in PRODUCER_KEYS}


def assigned(partitions: Iterable[tuple[str, int]]) -> str:
    """The option `assign` for these partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        topics.setdefault(topic, []).append(partition)
    return json.dumps(topics)


def compacted_topics(admin: Admin, topics: Iterable[str]) -> set[str]:
    """The topics that are compacted."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in sorted(set(topics))]
    return {
        resource.name
        for resource, entries in admin.describe_configs(resources).items()
        if "compact" in (entries["cleanup.policy"].value or "")
    }
