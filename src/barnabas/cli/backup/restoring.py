"""`barnabas restore`: checks a backup, makes its topics, appends their records, and sets the offsets of
groups."""

import argparse
import sys
from functools import partial
from typing import TypeAlias

from barnabas.cli.backup.appending import PartitionRestore
from barnabas.cli.backup.comparing import StoredRecords
from barnabas.cli.backup.contents import Chunk, Contents, Place, TopicCopy, check_chunk, read_manifest
from barnabas.cli.backup.parallel import Advance, in_parallel
from barnabas.cli.backup.places import place_of
from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.output import print_json, progress
from barnabas.client import Admin
from barnabas.client.admin.types import NewTopic, OffsetSpec
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.errors import ErrorCode, KafkaError

DESCRIPTION = """\
Bring the topics of a backup back. All files are checked first. A topic that exists must have as many
partitions, and no records but the first ones of the backup; otherwise nothing is changed. So a restore that
was interrupted is continued by the same command: it compares what is there, and appends the rest. Records
keep their order, keys, values, headers and times; their offsets begin at 0, and the offsets of groups are
translated to the same records."""
EXAMPLES = """\
  barnabas restore --bootstrap-server localhost:9092 --from ./backup
  barnabas restore --bootstrap-server localhost:9092 --from s3://backups/monday --topic orders --prefix
  restored.
  barnabas restore --from ./backup --check           only check the files
"""

# By the partition of the source.
Jobs: TypeAlias = dict[TopicPartition, PartitionRestore]


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
        jobs = _jobs(admin, place, contents, options)
        missing = _compare(admin, jobs, contents, options)
        _make_topics(admin, missing, options)
        _append(admin, jobs, contents, options)
        failures = {} if options.no_groups else _set_offsets(admin, contents, jobs)
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

    def check(chunk: Chunk, advance: Advance) -> str | None:
        advance(chunk.bytes)
        return check_chunk(place, chunk)

    with progress("checking bytes", sum(chunk.bytes for chunk in chunks)) as advance:
        found = in_parallel([partial(check, chunk) for chunk in chunks], parallel, advance)
    problems = [problem for problem in found if problem is not None]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ToolError(f"The backup in {place} is damaged: {'; '.join(problems[:3])}{more}.")


def _jobs(admin: Admin, place: Place, contents: Contents, options: argparse.Namespace) -> Jobs:
    wanted: dict[TopicPartition, set[int]] = {}
    for offsets in contents.groups.values():
        for each in offsets:
            wanted.setdefault(TopicPartition(each.topic, each.partition), set()).add(each.offset)
    return {
        source: PartitionRestore(
            admin,
            place,
            copy,
            TopicPartition(options.prefix + source.topic, source.partition),
            wanted.get(source, set()),
        )
        for source, copy in contents.partitions()
    }


def _compare(
    admin: Admin, jobs: Jobs, contents: Contents, options: argparse.Namespace
) -> dict[str, TopicCopy]:
    """Compare the topics that exist with the backup; returns those that do not exist. If one cannot be used,
    nothing is changed."""
    topics = {options.prefix + name: topic for name, topic in contents.topics.items()}
    existing, _ = results_and_errors(lambda: admin.describe_topics(list(topics)))
    problems = {
        name: f"{name} has {len(described.partitions)} partitions instead of {len(topics[name].partitions)}"
        for name, described in existing.items()
        if len(described.partitions) != len(topics[name].partitions)
    }
    if not problems:
        begun = [job for job in jobs.values() if job.target.topic in existing]
        problems = _differences(admin, begun, topics, options)
    if problems:
        named = "; ".join(list(problems.values())[:3])
        more = f"; {len(problems) - 3} more topics" if len(problems) > 3 else ""
        these = "these topics" if len(problems) > 1 else "this topic"
        raise ToolError(
            f"{named}{more}: delete {these} first, or restore under other names with --prefix. "
            "Nothing was changed."
        )
    return {name: topic for name, topic in topics.items() if name not in existing}


def _differences(
    admin: Admin, jobs: list[PartitionRestore], topics: dict[str, TopicCopy], options: argparse.Namespace
) -> dict[str, str]:
    """By topic: in what its records differ from those of the backup."""
    partitions = [job.target for job in jobs]
    starts = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))

    def compare(job: PartitionRestore, advance: Advance) -> str | None:
        partition = job.target
        is_compacted = "compact" in topics[partition.topic].configs.get("cleanup.policy", "")
        start, end = starts[partition].offset, ends[partition].offset
        return job.compare(StoredRecords(admin, partition, start, end, is_compacted=is_compacted), advance)

    begun = [job for job in jobs if ends[job.target].offset > 0]
    with progress("comparing bytes", None) as advance:
        found = in_parallel([partial(compare, job) for job in begun], options.parallel, advance)
    problems: dict[str, str] = {}
    for job, problem in zip(begun, found, strict=True):
        if problem is not None:
            problems.setdefault(job.target.topic, problem)
    return problems


def _make_topics(admin: Admin, topics: dict[str, TopicCopy], options: argparse.Namespace) -> None:
    new = [
        NewTopic(
            name, len(topic.partitions), options.replication_factor or topic.replication_factor, topic.configs
        )
        for name, topic in topics.items()
    ]
    if new:
        try:
            admin.create_topics(new)
        except KafkaError as error:
            hint = ""
            if ErrorCode.INVALID_REPLICATION_FACTOR.name in str(error):
                hint = " Choose fewer copies with --replication-factor."
            raise ToolError(f"The topics cannot be created: {str(error).rstrip('.')}.{hint}") from error


def _append(admin: Admin, jobs: Jobs, contents: Contents, options: argparse.Namespace) -> None:
    known = next((job.identity for job in jobs.values() if job.identity is not None), None)
    # All partitions have the same producer: a restore that goes on knows it from any of them.
    identity = known or admin.new_producer_identity()

    def append(job: PartitionRestore, advance: Advance) -> None:
        try:
            job.run(job.identity or identity, advance)
        except KafkaError as error:
            raise ToolError(
                f"{job.target} could not be restored: {str(error).rstrip('.')}. Run the same command again: "
                "it goes on where this one ended."
            ) from error

    total = sum(chunk.bytes for chunk in contents.chunks())
    with progress("restoring bytes", total) as advance:
        in_parallel([partial(append, job) for job in jobs.values()], options.parallel, advance)


def _set_offsets(admin: Admin, contents: Contents, jobs: Jobs) -> dict[str, KafkaError]:
    """Returns the errors by group: a group with members cannot be changed."""
    failures: dict[str, KafkaError] = {}
    for group, offsets in contents.groups.items():
        try:
            # Where this restore goes on, a group may have an offset already, and may have read on since.
            known = admin.list_consumer_group_offsets(group) if any(job.kept for job in jobs.values()) else {}
            translated: dict[TopicPartition, OffsetAndMetadata | int] = {}
            for each in offsets:
                job = jobs[TopicPartition(each.topic, each.partition)]
                if not (job.kept and job.target in known):
                    translated[job.target] = OffsetAndMetadata(
                        job.places[each.offset], metadata=each.metadata
                    )
            if translated:
                admin.alter_consumer_group_offsets(group, translated)
        except KafkaError as error:
            failures[group] = error
    return failures


def _report(
    contents: Contents,
    jobs: Jobs,
    failures: dict[str, KafkaError],
    options: argparse.Namespace,
) -> None:
    for group, error in failures.items():
        print(f"Error: the offsets of group {group} were not set: {error}", file=sys.stderr)
    moved = sum(old != new for job in jobs.values() for old, new in job.places.items())
    groups = 0 if options.no_groups else len(contents.groups) - len(failures)
    records = sum(job.records for job in jobs.values())
    kept = sum(job.kept for job in jobs.values())
    if options.json:
        print_json(
            {
                "topics": len(contents.topics),
                "partitions": len(jobs),
                "records": records,
                "recordsKept": kept,
                "groups": groups,
                "offsetsMoved": moved,
            }
        )
        return
    print(
        f"Restored {records} records of {len(jobs)} partitions of {len(contents.topics)} topics, and the "
        f"offsets of {groups} groups ({moved} of them have moved to the new places of their records)."
        + (f" {kept} of the records were there already." if kept else "")
    )
