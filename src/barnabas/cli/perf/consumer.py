"""`barnabas consumer-perf-test`: reads many records and prints the throughput."""

import argparse
import random
import re
import time
from datetime import datetime
from typing import Any

from barnabas.cli.connecting import add_connection, client_settings, key_values
from barnabas.cli.failures import ToolError
from barnabas.cli.perf.statistics import MEGABYTE, now_ms
from barnabas.client import Consumer
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.keys import CONSUMER_KEYS
from barnabas.client.types import TopicPartition

DESCRIPTION = "Read records as fast as possible; print the throughput and how long joining the group took."
EXAMPLES = """\
  barnabas consumer-perf-test --bootstrap-server localhost:9092 --topic load --num-records 1000000
  barnabas consumer-perf-test --bootstrap-server localhost:9092 --topic load --messages 1000000 \\
      --show-detailed-stats --reporting-interval 1000
"""
HEADER_END = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, " + (
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
POLL_SECONDS = 0.1
# The usual letters of Java's date formats and their Python equivalents; SSS is handled separately.
JAVA_DATE = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, config_flags=("--command-config", "--consumer.config"))
    add = parser.add_argument
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", help="read this topic")
    topics.add_argument("--include", metavar="REGEX", help="read the topics whose whole name matches")
    add("--num-records", "--messages", dest="records", required=True, type=int, metavar="COUNT")
    add("--group", metavar="ID", help="the group to join (a new one)")
    add("--fetch-size", type=int, default=1024 * 1024, metavar="BYTES", help="max.partition.fetch.bytes")
    add("--from-latest", action="store_true", help="a new group starts at the end, not at the beginning")
    add("--socket-buffer-size", type=int, default=2 * 1024 * 1024, metavar="BYTES")
    add("--command-property", action="append", default=[], metavar="KEY=VALUE", help="a consumer setting")
    add("--print-metrics", action="store_true", help="print the consumer's metrics at the end")
    add("--show-detailed-stats", action="store_true", help="one line per interval instead of one at the end")
    add("--timeout", type=int, default=10_000, metavar="MS", help="stop when no record arrives for this long")
    add("--reporting-interval", type=int, default=5000, metavar="MS")
    add("--date-format", default="yyyy-MM-dd HH:mm:ss:SSS", metavar="FORMAT", help="Java's letters")
    add("--hide-header", action="store_true")


def run(options: argparse.Namespace) -> int:
    if options.reporting_interval <= 0:
        raise ToolError("Reporting interval must be greater than 0.")
    if not options.hide_header:
        first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {HEADER_END}")
    with Consumer(_settings(options)) as consumer:
        reading = Reading(options)
        reading.read(consumer)
        metrics = consumer.metrics()
    if not options.show_detailed_stats:
        print(reading.total_line())
    if options.print_metrics:
        for name, value in metrics.items():
            if isinstance(value, int | float):
                print(f"{name:<60} : {value:.3f}")
    return 0


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return client_settings(
        options,
        {
            "client.id": "perf-consumer-client",
            **key_values(options.command_property, "--command-property"),
            "group.id": options.group or f"perf-consumer-{random.randrange(100_000)}",
            "receive.buffer.bytes": options.socket_buffer_size,
            "max.partition.fetch.bytes": options.fetch_size,
            "auto.offset.reset": "latest" if options.from_latest else "earliest",
            "check.crcs": False,
        },
        keys=CONSUMER_KEYS,
    )


def java_date(milliseconds: int, pattern: str) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000)
    letters = re.compile("|".join([*JAVA_DATE, "SSS"]))
    return letters.sub(
        lambda match: (
            f"{milliseconds % 1000:03}" if match[0] == "SSS" else moment.strftime(JAVA_DATE[match[0]])
        ),
        pattern,
    )


class Reading(RebalanceListener):
    """One run. It is also the listener that measures how long joining the group takes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._start_ms = self._end_ms = self._join_start_ms = now_ms()
        self._joined_ms = self._joined_since_report_ms = 0
        self._records = self._bytes = 0
        self._reported = (self._start_ms, 0, 0)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        took = now_ms() - self._join_start_ms
        self._joined_ms += took
        self._joined_since_report_ms += took

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._join_start_ms = now_ms()

    def read(self, consumer: Consumer) -> None:
        options = self._options
        consumer.subscribe(re.compile(options.include) if options.include else [options.topic], self)
        last = time.monotonic()
        while self._records < options.records and (time.monotonic() - last) * 1000 <= options.timeout:
            batch = consumer.poll(POLL_SECONDS)
            if batch:
                last = time.monotonic()
            for record in batch:
                self._records += 1
                self._bytes += max(record.serialized_key_size, 0) + max(record.serialized_value_size, 0)
            now = now_ms()
            if now - self._reported[0] >= options.reporting_interval:
                self._report(now)
        self._end_ms = now_ms()
        if self._records < options.records:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({options.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def _report(self, now: int) -> None:
        then, records, size = self._reported
        joined, self._joined_since_report_ms = self._joined_since_report_ms, 0
        if self._options.show_detailed_stats:
            figures = _figures(self._records - records, self._bytes - size, now - then, joined)
            figures[0], figures[2] = f"{self._bytes / MEGABYTE:.4f}", str(self._records)
            print(", ".join([java_date(now, self._options.date_format), "0", *figures]))
        self._reported = (now, self._records, self._bytes)

    def total_line(self) -> str:
        dates = [java_date(each, self._options.date_format) for each in (self._start_ms, self._end_ms)]
        figures = _figures(self._records, self._bytes, self._end_ms - self._start_ms, self._joined_ms)
        return ", ".join([*dates, *figures])


def _figures(records: int, size: int, elapsed_ms: int, joined_ms: int) -> list[str]:
    seconds = max(elapsed_ms, 1) / 1000
    fetch_ms = elapsed_ms - joined_ms
    fetch_seconds = fetch_ms / 1000 if fetch_ms > 0 else float("inf")
    megabytes = size / MEGABYTE
    return [
        f"{megabytes:.4f}",
        f"{megabytes / seconds:.4f}",
        str(records),
        f"{records / seconds:.4f}",
        str(joined_ms),
        str(fetch_ms),
        f"{megabytes / fetch_seconds:.4f}",
        f"{records / fetch_seconds:.4f}",
    ]
