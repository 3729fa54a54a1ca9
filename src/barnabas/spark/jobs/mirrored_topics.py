"""The topics of a mirror: listed at the source, created and extended at the target."""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client import Admin
from barnabas.client.admin.types import ConfigResource, ConfigResourceType, NewTopic
from barnabas.config.definition import Source
from barnabas.spark.jobs.clients import JobError, cluster_of
from barnabas.spark.settings import Topics

# Settings about the source's replicas, and one that would give copies the time of copying.
NOT_COPIED = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "message.timestamp.type",
    }
)
TOPIC_IN_TEMPLATE = "{topic}"


class Pair(NamedTuple):
    """A topic, the name of its copy, and how many partitions it has."""

    source: str
    target: str
    partitions: int


def pairs_of(client: Mapping[str, str], topics: Topics, template: str) -> list[Pair]:
    """The current topics, with the names of their copies: `{topic}` in the template is replaced by the
    name."""
    if TOPIC_IN_TEMPLATE not in template:
        raise JobError(f"The name of copies must contain {TOPIC_IN_TEMPLATE}, but it is {template!r}.")
    counts: dict[str, int] = {}
    for topic, _ in cluster_of(client).partitions(topics):
        counts[topic] = counts.get(topic, 0) + 1
    return [
        Pair(topic, template.replace(TOPIC_IN_TEMPLATE, topic), count)
        for topic, count in sorted(counts.items())
    ]


def check_apart(source: Admin, target: Admin, pairs: list[Pair]) -> None:
    """A topic must not be copied into itself: that would never end."""
    same = [pair.source for pair in pairs if pair.source == pair.target]
    if same and source.describe_cluster().cluster_id == target.describe_cluster().cluster_id:
        raise JobError(
            f"{', '.join(same)} would be copied into itself: source and target are the same cluster. Give the"
            " copies another name, for example with --rename 'copy.{topic}'."
        )


def ensure_topics(source: Admin, target: Admin, pairs: list[Pair]) -> list[str]:
    """Create missing copies, with the partitions and settings of the source, and add partitions to copies
    that have too few; returns the names of the created ones."""
    known = target.list_topics()
    missing = [pair for pair in pairs if pair.target not in known]
    configs = _own_configs(source, [pair.source for pair in missing])
    target.create_topics(
        [NewTopic(pair.target, pair.partitions, configs=configs[pair.source]) for pair in missing]
    )
    existing = [pair for pair in pairs if pair.target in known]
    described = target.describe_topics([pair.target for pair in existing])
    small = {
        pair.target: pair.partitions
        for pair in existing
        if len(described[pair.target].partitions) < pair.partitions
    }
    if small:
        target.create_partitions(small)
    return [pair.target for pair in missing]


def _own_configs(admin: Admin, topics: list[str]) -> dict[str, dict[str, str]]:
    """The settings of the topics themselves, without defaults."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    return {
        resource.name: {
            name: entry.value
            for name, entry in entries.items()
            if entry.source == Source.TOPIC and entry.value is not None and name not in NOT_COPIED
        }
        for resource, entries in admin.describe_configs(resources).items()
    }
