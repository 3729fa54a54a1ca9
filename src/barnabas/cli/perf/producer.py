"""`barnabas producer-perf-test`: sends many records and prints how fast they were acknowledged."""

import argparse
import random
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from barnabas.cli.connecting import key_values
from barnabas.cli.failures import ToolError
from barnabas.cli.perf.pace import Pace
from barnabas.cli.perf.statistics import ProducerStatistics, now_ms
from barnabas.client import Producer
from barnabas.config.properties import load_properties

DESCRIPTION = "Send records at a given rate, or as fast as possible; print throughput and latency."
EXAMPLES = """\
  barnabas producer-perf-test --bootstrap-server localhost:9092 --topic load --num-records 1000000 \\
      --record-size 100 --throughput -1
  barnabas producer-perf-test --topic load --num-records 100000 --record-size 1024 --throughput 5000 \\
      --producer-props bootstrap.servers=localhost:9092 acks=-1 linger.ms=2000 compression.type=lz4
  barnabas producer-perf-test --bootstrap-server localhost:9092 --topic load --num-records 1000 \\
      --payload-monotonic --throughput 100 --transaction-duration-ms 500
"""
TRANSACTION_DURATION_MS = 3000
PAYLOADS_PREPARED = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--topic", required=True, help="send to this topic")
    add("--num-records", required=True, type=int, metavar="COUNT", help="how many records to send")
    add(
        "--throughput",
        required=True,
        type=float,
        metavar="RECORDS",
        help="records per second, approximately; -1 for as fast as possible",
    )
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int, metavar="BYTES", help="random letters of this size")
    payload.add_argument("--payload-file", type=Path, metavar="FILE", help="random values from this file")
    payload.add_argument("--payload-monotonic", action="store_true", help="values count up from 0")
    add(
        "--payload-delimiter", default="\\n", metavar="TEXT", help="the separator of values in the file (\\n)"
    )
    add("--bootstrap-server", metavar="HOST:PORT", help="a broker, or several separated by commas")
    add(
        "--producer-props",
        "--command-property",
        dest="properties",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="settings of the producer, such as acks=all linger.ms=10",
    )
    add("--producer.config", "--command-config", dest="command_config", type=Path, metavar="FILE")
    add("--print-metrics", action="store_true", help="print the producer's metrics at the end")
    add("--transactional-id", metavar="ID", help="send in transactions, with this id")
    add(
        "--transaction-duration-ms",
        type=int,
        metavar="MS",
        help=f"commit after this time ({TRANSACTION_DURATION_MS})",
    )
    add("--warmup-records", type=int, default=0, metavar="COUNT", help="left out of the steady-state line")
    add("--reporting-interval", type=int, default=5000, metavar="MS", help="one line per interval (5000)")


def run(options: argparse.Namespace) -> int:
    _check(options)
    settings = producer_settings(options)
    payload = payloads(options)
    with Producer(settings) as producer:
        statistics = _send_all(producer, options, payload, settings.get("transactional.id") is not None)
        producer.flush()
        for each in statistics:
            print(each.total_line())
        if options.print_metrics:
            for name, value in sorted(producer.metrics().items()):
                print(f"{name:<60} : {value:.3f}")
    failed = statistics[0].errors
    if failed:
        print(f"{failed} records were not acknowledged.", file=sys.stderr)
    return 1 if failed else 0


def _check(options: argparse.Namespace) -> None:
    for name in ("num_records", "record_size", "transaction_duration_ms", "reporting_interval"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise ToolError(f"--{name.replace('_', '-')} should be greater than zero.")
    if not 0 <= options.warmup_records < options.num_records:
        raise ToolError("--warmup-records should be less than --num-records, and not negative.")
    if options.throughput == 0:
        raise ToolError("--throughput is records per second, or -1 for as fast as possible.")


def producer_settings(options: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {"client.id": "perf-producer-client"}
    if options.command_config is not None:
        settings |= load_properties(options.command_config.read_text())
    settings |= key_values(options.properties, "--producer-props")
    # Scripts for the Java client set these; bytes need no serializer here.
    settings.pop("key.serializer", None)
    settings.pop("value.serializer", None)
    if options.bootstrap_server is not None:
        settings["bootstrap.servers"] = options.bootstrap_server
    if "bootstrap.servers" not in settings:
        raise ToolError("Give the address of a broker with --bootstrap-server HOST:PORT.")
    if options.transactional_id is not None:
        settings["transactional.id"] = options.transactional_id
    elif options.transaction_duration_ms is not None and "transactional.id" not in settings:
        settings["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    return settings


def payloads(options: argparse.Namespace) -> Callable[[int], bytes]:
    """A function that returns the value of record number n."""
    if options.payload_monotonic:
        return lambda number: b"%d" % number
    source = random.Random(0)
    if options.payload_file is not None:
        delimiter = options.payload_delimiter.replace("\\n", "\n").encode()
        values = options.payload_file.read_bytes().removesuffix(delimiter).split(delimiter)
        print(f"Reading payloads from: {options.payload_file.absolute()}")
        if values == [b""]:
            raise ToolError(f"{options.payload_file} is empty.")
        print(f"Number of records read: {len(values)}")
        return lambda number: source.choice(values)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    # Prepare the values: generating random letters for each record would be slower than the producer.
    prepared = [bytes(source.choices(letters, k=options.record_size)) for _ in range(PAYLOADS_PREPARED)]
    return lambda number: prepared[number % PAYLOADS_PREPARED]


def _send_all(
    producer: Producer, options: argparse.Namespace, payload: Callable[[int], bytes], transactional: bool
) -> list[ProducerStatistics]:
    """Send all records. Returns the statistics of all records and, after a warm-up, of the rest."""
    interval = options.reporting_interval
    statistics = [ProducerStatistics(options.num_records, interval, print)]
    duration_ms = options.transaction_duration_ms or TRANSACTION_DURATION_MS
    if transactional:
        producer.init_transactions()
    transaction_start: int | None = None
    pace = Pace(options.throughput)
    for number in range(options.num_records):
        if options.warmup_records and number == options.warmup_records:
            rest = options.num_records - number
            statistics.append(ProducerStatistics(rest, 2**62, print, steady=True))
        if transactional and transaction_start is None:
            producer.begin_transaction()
            transaction_start = now_ms()
        start = now_ms()
        value = payload(number)
        producer.send(options.topic, value, on_delivery=partial(_delivered, statistics[:], start, len(value)))
        if transaction_start is not None and start - transaction_start >= duration_ms:
            producer.commit_transaction()
            transaction_start = None
        pace.keep(number + 1)
    if transaction_start is not None:
        producer.commit_transaction()
    return statistics


def _delivered(
    statistics: list[ProducerStatistics], start_ms: int, size: int, _: object, error: Exception | None
) -> None:
    if error is None:
        for each in statistics:
            each.done(start_ms, size)
        return
    if statistics[0].errors == 0:
        print(f"Error: {error}", file=sys.stderr)
    statistics[0].errors += 1
