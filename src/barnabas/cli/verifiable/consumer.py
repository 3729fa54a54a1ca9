"""`barnabas verifiable-consumer`: prints what a member of a group is assigned, reads and commits."""

import argparse
from contextlib import suppress
from typing import Any

from barnabas.cli.connecting import add_connection, client_settings
from barnabas.cli.signals import woken_by_signals
from barnabas.cli.verifiable import print_event
from barnabas.client import Consumer
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.errors import KafkaError, WakeupError
from barnabas.client.keys import CONSUMER_KEYS
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.kernels.record_decode import ConsumerRecord

DESCRIPTION = """\
Read a topic as a member of a group and print one JSON object per event: assignments, records, commits. Runs
until --max-messages, SIGTERM or Ctrl-C."""
EXAMPLES = """\
  barnabas verifiable-consumer --bootstrap-server localhost:9092 --topic numbers --group-id test
  --max-messages 100
"""

POLL_SECONDS = 60.0
# Kafka names assignors by their classes.
ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, config_flags=("--command-config", "--consumer.config"))
    add = parser.add_argument
    add("--topic", required=True, help="the topic to read")
    add("--group-id", required=True, metavar="GROUP", help="the group to join")
    add("--group-protocol", default="classic", type=str.lower, choices=("classic", "consumer"))
    add("--group-remote-assignor", metavar="NAME", help="for the consumer protocol: uniform or range")
    add("--group-instance-id", metavar="ID", help="be a static member")
    add("--max-messages", type=int, default=-1, metavar="N", help="how many (-1: until a signal)")
    add("--session-timeout", type=int, metavar="MS", help="session.timeout.ms")
    add("--verbose", action="store_true", help="print every record")
    add("--enable-autocommit", action="store_true", help="commit in the background")
    add("--reset-policy", default="earliest", choices=("earliest", "latest", "none"))
    add("--assignment-strategy", default="range", metavar="NAME", help="for the classic protocol (range)")


class _Listener(RebalanceListener):
    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        print_event("partitions_assigned", partitions=[_place(each) for each in partitions])

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        print_event("partitions_revoked", partitions=[_place(each) for each in partitions])


def run(options: argparse.Namespace) -> int:
    consumer = Consumer(_settings(options))
    stopped_by: list[int] = []
    print_event("startup_complete")
    with woken_by_signals(consumer, stopped_by):
        try:
            with suppress(WakeupError):
                consumer.subscribe([options.topic], _Listener())
                _read(consumer, options)
        finally:
            consumer.close()
            print_event("shutdown_complete")
    return 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "group.id": options.group_id,
        "group.protocol": options.group_protocol,
        "group.instance.id": options.group_instance_id,
        "enable.auto.commit": options.enable_autocommit,
        "auto.offset.reset": options.reset_policy,
        "session.timeout.ms": options.session_timeout,
    }
    if options.group_protocol == "consumer":
        settings["group.remote.assignor"] = options.group_remote_assignor
    else:
        name = options.assignment_strategy.rpartition(".")[2]
        settings["partition.assignment.strategy"] = ASSIGNORS.get(name, name)
    given = {key: value for key, value in settings.items() if value is not None}
    return client_settings(options, given, keys=CONSUMER_KEYS)


def _read(consumer: Consumer, options: argparse.Namespace) -> None:
    count = 0
    while options.max_messages < 0 or count < options.max_messages:
        records = list(consumer.poll(POLL_SECONDS))
        if not records:
            continue
        if options.max_messages >= 0:
            records = records[: options.max_messages - count]
        count += len(records)
        offsets = _print_records(records, options.verbose)
        if not options.enable_autocommit:
            _commit(consumer, offsets)


def _print_records(records: list[ConsumerRecord], is_verbose: bool) -> dict[TopicPartition, int]:
    """Returns the offsets to commit."""
    by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
    for record in records:
        by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
    summaries = []
    for partition, read in by_partition.items():
        first, last = read[0].offset, read[-1].offset
        summaries.append({**_place(partition), "count": len(read), "minOffset": first, "maxOffset": last})
        for record in read if is_verbose else ():
            print_event(
                "record_data",
                key=_text(record.key),
                value=_text(record.value),
                **_place(partition),
                offset=record.offset,
            )
    print_event("records_consumed", count=len(records), partitions=summaries)
    return {partition: read[-1].offset + 1 for partition, read in by_partition.items()}


def _commit(consumer: Consumer, offsets: dict[TopicPartition, int]) -> None:
    places = [{**_place(partition), "offset": offset} for partition, offset in offsets.items()]
    try:
        consumer.commit_sync({each: OffsetAndMetadata(offset) for each, offset in offsets.items()})
    except KafkaError as error:
        print_event("offsets_committed", offsets=places, error=str(error), success=False)
    else:
        print_event("offsets_committed", offsets=places, success=True)


def _place(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
