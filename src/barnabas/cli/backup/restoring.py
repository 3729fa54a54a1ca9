"""`barnabas restore`: checks a backup, makes its topics, appends their records, and sets the offsets of
groups."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from barnabas.cli.backup.appending import PartitionRestore
from barnabas.cli.backup.contents import Contents, Place, check_chunk, read_manifest
from barnabas.cli.backup.places import place_of
from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json, progress
from barnabas.client import Admin
from barnabas.client.admin.types import NewTopic, OffsetSpec
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.errors import ErrorCode, KafkaError

DESCRIPTION = """\
Bring the topics of a backup back. All files are checked first. A topic that exists must be empty and have as
many partitions; otherwise nothing is changed. Records keep their order, keys, values, headers and times;
their offsets begin at 0, and the offsets of groups are translated to the same records."""
EXAMPLES = """\
  barnabas restore --bootstrap-server localhost:9092 --from ./backup
  barnabas restore --bootstrap-server localhost:9092 --from s3://backups/monday --topic orders --prefix
  restored. barnabas restore --from ./backup --check           only check the files
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    address = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_group=address)
    address.add_argument("--check", action="store_true", help="only check the files of the backup")
    parser.add_argument(
        "--from",
        required=True,
        dest="source",
        metavar="PLACE",
        help="a directory, or a URI of an object store",
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME", help="topics (all); may be repeated"
    )
    parser.add_argument(
        "--prefix", default="", metavar="TEXT", help="what the names of the new topics begin with"
    )
    parser.add_argument(
        "--replication-factor", type=int, metavar="N", help="copies of each partition (those of the backup)"
    )
    parser.add_argument("--no-groups", action="store_true", help="leave out the offsets of groups")
    parser.add_argument(
        "--parallel", type=int, default=4, metavar="N", help="partitions at the same time (4)"
    )
    parser.add_argument("--json", action="store_true", help="print what was restored as JSON")


def run(options: argparse.Namespace) -> int:
    place = place_of(options.source)
    contents = _chosen(read_manifest(place), options.topic, place)
    _check_files(place, contents, options.parallel)
    if options.check:
        size = sum(chunk.bytes for chunk in contents.chunks())
        print(
            f"The {len(contents.chunks())} files ({size} bytes) of the backup in {place} match their "
            "checksums."
        )
        return 0
    with admin_of(options) as admin:
        _make_topics(admin, contents, options)
        jobs = _append(admin, place, contents, options)
        failures = {} if options.no_groups else _set_offsets(admin, contents, jobs, options.prefix)
    _report(contents, jobs, failures, options)
    return 1 if failures else 0


def _chosen(contents: Contents, names: list[str], place: Place) -> Contents:
    missing = [name for name in names if name not in contents.topics]
    if missing:
        raise ToolError(
            f"The backup in {place} does not have {', '.join(missing)}: it has {', '.join(contents.topics)}."
        )
    if names:
        contents.topics = {name: contents.topics[name] for name in names}
        kept = {
            group: [each for each in offsets if each.topic in names]
            for group, offsets in contents.groups.items()
        }
        contents.groups = {group: offsets for group, offsets in kept.items() if offsets}
    return contents


def _check_files(place: Place, contents: Contents, parallel: int) -> None:
    chunks = contents.chunks()
    problems: list[str] = []
    with (
        progress("checking bytes", sum(chunk.bytes for chunk in chunks)) as advance,
        ThreadPoolExecutor(max(1, parallel)) as pool,
    ):
        for chunk, problem in zip(chunks, pool.map(partial(check_chunk, place), chunks), strict=True):
            advance(chunk.bytes)
            problems += [] if problem is None else [problem]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ToolError(f"The backup in {place} is damaged: {'; '.join(problems[:3])}{more}.")


def _make_topics(admin: Admin, contents: Contents, options: argparse.Namespace) -> None:
    """Create the topics, unless they exist and are empty. If one cannot be used, nothing is created."""
    names = {options.prefix + name: topic for name, topic in contents.topics.items()}
    existing, _ = results_and_errors(lambda: admin.describe_topics(list(names)))
    problems = []
    for name, described in existing.items():
        count = len(described.partitions)
        if count != len(names[name].partitions):
            problems.append(f"{name} has {count} partitions instead of {len(names[name].partitions)}")
        elif not _is_empty(admin, name, count):
            problems.append(f"{name} has had records")
    if problems:
        raise ToolError(
            f"{'; '.join(problems)}: delete {'these topics' if len(problems) > 1 else 'this topic'} first, "
            "or "
            "restore under other names with --prefix. Nothing was changed."
        )
    new = [
        NewTopic(
            name, len(topic.partitions), options.replication_factor or topic.replication_factor, topic.configs
        )
        for name, topic in names.items()
        if name not in existing
    ]
    if new:
        try:
            admin.create_topics(new)
        except KafkaError as error:
            hint = ""
            if ErrorCode.INVALID_REPLICATION_FACTOR.name in str(error):
                hint = " Choose fewer copies with --replication-factor."
            raise ToolError(f"The topics cannot be created: {str(error).rstrip('.')}.{hint}") from error


def _is_empty(admin: Admin, topic: str, count: int) -> bool:
    """Whether it never had records: its first record must get offset 0."""
    partitions = [TopicPartition(topic, number) for number in range(count)]
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return all(listed.offset == 0 for listed in ends.values())


def _append(
    admin: Admin, place: Place, contents: Contents, options: argparse.Namespace
) -> dict[TopicPartition, PartitionRestore]:
    wanted: dict[TopicPartition, set[int]] = {}
    for offsets in contents.groups.values():
        for each in offsets:
            wanted.setdefault(TopicPartition(each.topic, each.partition), set()).add(each.offset)
    jobs = {
        source: PartitionRestore(
            admin,
            place,
            copy,
            TopicPartition(options.prefix + source.topic, source.partition),
            wanted.get(source, set()),
        )
        for source, copy in contents.partitions()
    }
    total = sum(chunk.bytes for chunk in contents.chunks())
    with progress("restoring bytes", total) as advance, ThreadPoolExecutor(max(1, options.parallel)) as pool:
        for source, done in {source: pool.submit(job.run, advance) for source, job in jobs.items()}.items():
            try:
                done.result()
            except KafkaError as error:
                raise ToolError(
                    f"{options.prefix}{source} could not be restored: {str(error).rstrip('.')}. Delete the "
                    "topics, and "
                    "restore again."
                ) from error
    return jobs


def _set_offsets(
    admin: Admin, contents: Contents, jobs: dict[TopicPartition, PartitionRestore], prefix: str
) -> dict[str, KafkaError]:
    """Returns the errors by group: a group with members cannot be changed."""
    failures: dict[str, KafkaError] = {}
    for group, offsets in contents.groups.items():
        translated: dict[TopicPartition, OffsetAndMetadata | int] = {}
        for each in offsets:
            found = jobs[TopicPartition(each.topic, each.partition)].places[each.offset]
            translated[TopicPartition(prefix + each.topic, each.partition)] = OffsetAndMetadata(
                found, metadata=each.metadata
            )
        try:
            admin.alter_consumer_group_offsets(group, translated)
        except KafkaError as error:
            failures[group] = error
    return failures


def _report(
    contents: Contents,
    jobs: dict[TopicPartition, PartitionRestore],
    failures: dict[str, KafkaError],
    options: argparse.Namespace,
) -> None:
    for group, error in failures.items():
        print(f"Error: the offsets of group {group} were not set: {error}", file=sys.stderr)
    moved = sum(old != new for job in jobs.values() for old, new in job.places.items())
    groups = 0 if options.no_groups else len(contents.groups) - len(failures)
    records = sum(job.records for job in jobs.values())
    if options.json:
        print_json(
            {
                "topics": len(contents.topics),
                "partitions": len(jobs),
                "records": records,
                "groups": groups,
                "offsetsMoved": moved,
            }
        )
        return
    print(
        f"Restored {records} records of {len(jobs)} partitions of {len(contents.topics)} topics, and the "
        "offsets "
        f"of {groups} groups ({moved} of them have moved to the new places of their records)."
    )
