"""`barnabas audit`: checks topics, or log directories without a broker, for gaps, duplicates and damage."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.connecting import add_connection, await_broker, client_settings
from barnabas.cli.failures import ToolError
from barnabas.cli.output import columns, print_json
from barnabas.cli.spark_session import add_spark, spark_session

if TYPE_CHECKING:
    from barnabas.spark.jobs.audit import Checks, DirectoryLog, Finding, Report, TopicLog

DESCRIPTION = """\
Check every batch of topics, or of the log directories of brokers, and report what is wrong: missing offsets
that neither compaction nor transaction markers explain, batches that do not match their checksum, records
that a producer wrote twice, offsets and leader epochs that decrease, indexes that do not match their log; on
request also equal records, and keys whose records are out of order. It runs on Spark, with a task for each
partition or segment. The exit code is 1 if something is wrong. See docs/jobs.md."""
EXAMPLES = """\
  barnabas audit --bootstrap-server localhost:9092 --topic orders
  barnabas audit --bootstrap-server localhost:9092 --topic orders --duplicates --sequence-field $.version
  barnabas audit --log-dir ./data --json
  barnabas audit --log-dir /mnt/b1 --log-dir /mnt/b2 --topic orders --master spark://host:7077
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_group=where)
    where.add_argument(
        "--log-dir",
        action="append",
        type=Path,
        metavar="DIR",
        help="a log directory (log.dirs), instead of a running broker; may be repeated",
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME", help="a topic; may be repeated"
    )
    parser.add_argument("--topic-pattern", metavar="REGEX", help="topics whose full name matches")
    parser.add_argument(
        "--duplicates", action="store_true", help="look for records with the same key and value"
    )
    parser.add_argument(
        "--sequence-field",
        metavar="PATH",
        help="a number that must increase for each key: $.path.in.json or header:NAME",
    )
    parser.add_argument(
        "--examples", type=int, default=5, metavar="N", help="print N examples of each kind (5)"
    )
    parser.add_argument("--tasks", type=int, metavar="N", help="split large partitions into about N tasks")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_spark(parser)


def run(options: argparse.Namespace) -> int:
    log, checks = _log(options), _checks(options)
    with spark_session(options, "audit") as spark:
        from barnabas.spark.jobs.audit import audit
        from barnabas.spark.jobs.clients import JobError

        try:
            report = audit(spark, log, checks)
        except JobError as error:
            raise ToolError(str(error)) from error
    if options.json:
        _print_json(report)
    else:
        _print(report)
    return 1 if report.faults else 0


def _checks(options: argparse.Namespace) -> "Checks":
    from barnabas.spark.jobs.audit import Checks

    return Checks(options.duplicates, options.sequence_field, options.examples)


def _log(options: argparse.Namespace) -> "TopicLog | DirectoryLog":
    """The log to check. Mistakes in the options are reported before Spark starts."""
    from barnabas.spark.jobs.clients import JobError
    from barnabas.spark.options import OptionError

    try:
        return _log_of(options)
    except (JobError, OptionError) as error:
        raise ToolError(str(error)) from error


def _log_of(options: argparse.Namespace) -> "TopicLog | DirectoryLog":
    from barnabas.client.config import consumer_config
    from barnabas.client.keys import CONSUMER_KEYS
    from barnabas.spark.settings import Topics

    try:
        from barnabas.spark.jobs.audit import DirectoryLog, TopicLog
    except ImportError as error:
        raise ToolError("Audits run on Spark: pip install 'barnabas[spark]'.") from error
    if options.log_dir:
        if options.topic_pattern:
            raise ToolError(
                "--topic-pattern cannot be used with --log-dir: use --topic, or leave it out for all."
            )
        return DirectoryLog(options.log_dir, tuple(options.topic))
    if bool(options.topic) == bool(options.topic_pattern):
        raise ToolError("Give either --topic NAME, which may be repeated, or --topic-pattern REGEX.")
    client = client_settings(options, keys=CONSUMER_KEYS)
    await_broker(consumer_config(client).servers)
    return TopicLog(client, Topics(tuple(options.topic), options.topic_pattern or ""), options.tasks)


def _print(report: "Report") -> None:
    headers = ["TOPIC", "PARTITION", "FIRST", "LAST", "RECORDS", "MARKERS", "COMPACTED", "MISSING"]
    headers += ["REPEATED", "BACKWARDS"]
    fields = [header.lower() for header in headers]
    if any(each.place for each in report.partitions):
        headers, fields = ["DIRECTORY", *headers], ["place", *fields]
    rows = [[each._asdict()[field] for field in fields] for each in report.partitions]
    print(columns(headers, rows))
    for each in report.findings:
        print(_sentence(each))
    records = sum(each.records for each in report.partitions)
    verdict = _count(report.faults, "fault") if report.faults else "nothing is wrong"
    print(f"{_count(len(report.partitions), 'partition')}, {_count(records, 'record')}: {verdict}.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sentence(finding: "Finding") -> str:
    where = f"{finding.place}/" if finding.place else ""
    at = "" if finding.offset is None else f" at offset {finding.offset}"
    kind = "" if finding.is_wrong else " (no fault)"
    return f"{where}{finding.topic}-{finding.partition}{at}: {finding.detail} [{finding.check}]{kind}"


def _print_json(report: "Report") -> None:
    print_json(
        {
            "faults": report.faults,
            "partitions": [each._asdict() for each in report.partitions],
            "findings": [each._asdict() for each in report.findings],
        }
    )
