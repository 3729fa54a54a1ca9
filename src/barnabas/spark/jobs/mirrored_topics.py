"""The topics of a mirror: found at the source, made and kept up at the target."""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client import Admin
from barnabas.client.admin.types import ConfigResource, ConfigResourceType, NewTopic
from barnabas.config.definition import Source
from barnabas.spark.jobs.clients import JobError, cluster_of
from barnabas.spark.settings import Topics

# Of the source's own replicas, and one that would give copies the time of copying.
NOT_COPIED = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "message.timestamp.type",
    }
)
TOPIC_IN_TEMPLATE = "{topic}"


class Pair(NamedTuple):
    """A topic, what its copy is called, and how many partitions it has."""

    source: str
    target: str
    partitions: int


def pairs_of(client: Mapping[str, str], topics: Topics, template: str) -> list[Pair]:
    """The topics there are now, with the names of their copies: `{topic}` in the template is the name."""
    if TOPIC_IN_TEMPLATE not in template:
        raise JobError(f"The name of copies must have {TOPIC_IN_TEMPLATE} in it, and {template!r} has not.")
    counts: dict[str, int] = {}
    for topic, _ in cluster_of(client).partitions(topics):
        counts[topic] = counts.get(topic, 0) + 1
    return [
        Pair(topic, template.replace(TOPIC_IN_TEMPLATE, topic), count)
        for topic, count in sorted(counts.items())
    ]


def check_apart(source: Admin, target: Admin, pairs: list[Pair]) -> None:
    """A topic must not be copied into itself, for ever."""
    same = [pair.source for pair in pairs if pair.source == pair.target]
    if same and source.describe_cluster().cluster_id == target.describe_cluster().cluster_id:
        raise JobError(
            f"{', '.join(same)} would be copied into itself: source and target are one cluster. Name the"
            " copies with --rename, such as --rename 'copy.{topic}'."
        )


def ensure_topics(source: Admin, target: Admin, pairs: list[Pair]) -> list[str]:
    """Make the copies that are missing, with the source's partitions and settings, and give those that have
    become too small more partitions; the names of those made."""
    known = target.list_topics()
    missing = [pair for pair in pairs if pair.target not in known]
    configs = _own_configs(source, [pair.source for pair in missing])
    target.create_topics(
        [NewTopic(pair.target, pair.partitions, configs=configs[pair.source]) for pair in missing]
    )
    there = [pair for pair in pairs if pair.target in known]
    described = target.describe_topics([pair.target for pair in there])
    small = {
        pair.target: pair.partitions
        for pair in there
        if len(described[pair.target].partitions) < pair.partitions
    }
    if small:
        target.create_partitions(small)
    return [pair.target for pair in missing]


def _own_configs(admin: Admin, topics: list[str]) -> dict[str, dict[str, str]]:
    """What was set for the topics themselves."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    return {
        resource.name: {
            name: entry.value
            for name, entry in entries.items()
            if entry.source == Source.TOPIC and entry.value is not None and name not in NOT_COPIED
        }
        for resource, entries in admin.describe_configs(resources).items()
    }
