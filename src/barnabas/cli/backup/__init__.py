"""`barnabas backup`: copies topics, their settings and the offsets of groups to a directory or an object
store."""

import argparse
import datetime
import re
from collections.abc import Iterable

from barnabas import __version__
from barnabas.cli.backup.contents import (
    MANIFEST,
    PLAN,
    Committed,
    Contents,
    PartitionCopy,
    Place,
    TopicCopy,
    contents_of,
    write_manifest,
)
from barnabas.cli.backup.copying import PartitionBackup
from barnabas.cli.backup.parallel import in_parallel
from barnabas.cli.backup.places import place_of
from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json, progress
from barnabas.client import Admin
from barnabas.client.admin.types import ConfigResource, ConfigResourceType, OffsetSpec
from barnabas.client.types import TopicPartition
from barnabas.config.definition import Source

DESCRIPTION = """\
Copy topics to a directory, or to an object store such as s3://bucket/path: their records up to now, as
batches of bytes, their settings, and the offsets of groups. Only committed records are copied. A backup that
was interrupted is continued by the same command. `barnabas restore` brings it back, and checks it."""
EXAMPLES = """\
  barnabas backup --bootstrap-server localhost:9092 --to ./backup
  barnabas backup --bootstrap-server localhost:9092 --to s3://backups/monday --topic orders --topic
  'payments.*'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument(
        "--to", required=True, metavar="PLACE", help="a directory, or a URI of an object store"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="REGEX",
        help="topics (all that are not internal); may be repeated",
    )
    parser.add_argument("--no-groups", action="store_true", help="leave out the offsets of groups")
    parser.add_argument(
        "--parallel", type=int, default=4, metavar="N", help="partitions at the same time (4)"
    )
    parser.add_argument("--json", action="store_true", help="print what was copied as JSON")


def run(options: argparse.Namespace) -> int:
    place = place_of(options.to)
    if place.read(MANIFEST) is not None:
        raise ToolError(f"{place} has a complete backup already: choose another place, or delete it.")
    with admin_of(options) as admin:
        planned = place.read(PLAN)
        is_resumed = planned is not None
        if planned is None:
            contents = _plan(admin, options)
            place.write(PLAN, contents.to_json())
        else:
            contents = contents_of(planned, f"{place}/{PLAN}")
            _check_same(admin, contents, options, place)
        _copy(admin, place, contents, options.parallel, is_resumed)
    write_manifest(place, contents)
    _report(contents, place, options.json)
    return 0


def _plan(admin: Admin, options: argparse.Namespace) -> Contents:
    names = _chosen(admin.list_topics(), options.topic)
    if not names:
        raise ToolError("There are no such topics: nothing to copy.")
    # The offsets of groups come first: none of them is then after the end of what is copied.
    groups = {} if options.no_groups else _committed(admin, set(names))
    described = admin.describe_topics(names)
    partitions = [
        TopicPartition(name, info.partition) for name in names for info in described[name].partitions
    ]
    starts = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level="read_committed")
    configs = _configs(admin, names)
    topics = {
        name: TopicCopy(
            configs[name],
            len(described[name].partitions[0].replicas),
            [
                PartitionCopy(starts[each].offset, ends[each].offset)
                for each in sorted(partitions)
                if each.topic == name
            ],
        )
        for name in names
    }
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Contents(admin.describe_cluster().cluster_id, now, __version__, topics, groups)


def _chosen(names: Iterable[str], patterns: list[str]) -> list[str]:
    try:
        compiled = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise ToolError(f"--topic: {error.pattern!r} is not a regular expression: {error}.") from error
    return sorted(name for name in names if not compiled or any(each.fullmatch(name) for each in compiled))


def _configs(admin: Admin, names: list[str]) -> dict[str, dict[str, str]]:
    """The settings that were made for the topics themselves."""
    resources = {ConfigResource(ConfigResourceType.TOPIC, name): name for name in names}
    described = admin.describe_configs(list(resources), include_synonyms=False)
    return {
        name: {
            key: entry.value
            for key, entry in described[resource].items()
            if entry.source == Source.TOPIC and entry.value is not None
        }
        for resource, name in resources.items()
    }


def _committed(admin: Admin, topics: set[str]) -> dict[str, list[Committed]]:
    groups = {}
    for listing in admin.list_consumer_groups():
        offsets = [
            Committed(partition.topic, partition.partition, at.offset, at.metadata)
            for partition, at in sorted(admin.list_consumer_group_offsets(listing.group_id).items())
            if partition.topic in topics
        ]
        if offsets:
            groups[listing.group_id] = offsets
    return groups


def _check_same(admin: Admin, contents: Contents, options: argparse.Namespace, place: Place) -> None:
    """What was begun is finished as it was planned: with its topics, up to the ends of then."""
    cluster_id = admin.describe_cluster().cluster_id
    if contents.cluster_id != cluster_id:
        raise ToolError(
            f"{place} has an interrupted backup of the cluster {contents.cluster_id}, but this is "
            f"{cluster_id}: "
            "choose another place, or delete it."
        )
    existing = set(admin.list_topics())
    missing = sorted(set(contents.topics) - existing)
    wanted = set(_chosen(existing, options.topic)) if options.topic else set(contents.topics)
    if missing or wanted != set(contents.topics):
        raise ToolError(
            f"{place} has an interrupted backup of the topics {', '.join(contents.topics)}"
            f"{'; gone: ' + ', '.join(missing) if missing else ''}: give the same --topic options, "
            "or choose another place."
        )


def _copy(admin: Admin, place: Place, contents: Contents, parallel: int, is_resumed: bool) -> None:
    jobs = [PartitionBackup(admin, place, partition, copy) for partition, copy in contents.partitions()]
    if is_resumed:
        for job in jobs:
            job.resume()
    total = sum(copy.end - copy.start for _, copy in contents.partitions())
    with progress("copying offsets", total) as advance:
        in_parallel([job.run for job in jobs], parallel, advance)


def _report(contents: Contents, place: Place, as_json: bool) -> None:
    chunks = contents.chunks()
    facts = {
        "place": str(place),
        "topics": len(contents.topics),
        "partitions": sum(len(topic.partitions) for topic in contents.topics.values()),
        "records": sum(chunk.records for chunk in chunks),
        "bytes": sum(chunk.bytes for chunk in chunks),
        "groups": len(contents.groups),
    }
    if as_json:
        print_json(facts)
    else:
        print(
            "Copied {records} records ({bytes} bytes) of {partitions} partitions of {topics} topics, "
            "and the offsets of {groups} groups, to {place}.".format(**facts)
        )
