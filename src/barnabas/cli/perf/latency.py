"""`barnabas e2e-latency`: sends one record at a time and waits until a consumer has received it."""

import argparse
import random
import sys
import time
from pathlib import Path

from barnabas.cli.connecting import client_settings
from barnabas.cli.failures import ToolError
from barnabas.cli.output import progress
from barnabas.cli.perf.statistics import percentile
from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin import NewTopic
from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.client.types import TopicPartition

DESCRIPTION = """\
Send records one at a time, each after a consumer has received the previous one, and print the latencies in
milliseconds. Kafka's older form with five or six positional arguments also works:
bootstrap-server topic num-records producer-acks record-size [properties file]."""
EXAMPLES = """\
  barnabas e2e-latency --bootstrap-server localhost:9092 --topic latency --num-records 10000 \\
      --producer-acks all --record-size 100
  barnabas e2e-latency localhost:9092 latency 10000 all 100
"""
RECEIVE_SECONDS_MAX = 60.0
REPORT_EVERY = 1000
POSITIONAL = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size", "command_config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("older", nargs="*", help=argparse.SUPPRESS)
    add("--bootstrap-server", metavar="HOST:PORT", help="a broker, or several separated by commas")
    add("--topic", help="the topic to use; it is created if it does not exist")
    add("--num-records", metavar="COUNT", help="how many records to send")
    add("--producer-acks", metavar="ACKS", help="1 or all")
    add("--record-size", metavar="BYTES", help="the size of a value")
    add("--record-key-size", type=int, default=0, metavar="BYTES", help="the size of a key (no key)")
    add("--num-headers", type=int, default=0, metavar="COUNT", help="headers of a record (0)")
    add("--record-header-key-size", type=int, default=0, metavar="BYTES")
    add("--record-header-size", type=int, default=0, metavar="BYTES", help="-1 for headers without a value")
    add("--command-config", type=Path, metavar="FILE", help="a properties file with settings of the clients")


def run(options: argparse.Namespace) -> int:
    _take_older_form(options)
    with Admin(client_settings(options, keys=ADMIN_KEYS)) as admin:
        _ensure_topic(admin, options.topic)
    reading = {
        "group.id": f"test-group-{time.time_ns() // 1_000_000}",
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
        "fetch.max.wait.ms": 500,
        "fetch.min.bytes": 1,
    }
    writing = {"linger.ms": 0, "acks": options.producer_acks}
    with (
        Consumer(client_settings(options, reading, keys=CONSUMER_KEYS)) as consumer,
        Producer(client_settings(options, writing, keys=PRODUCER_KEYS)) as producer,
    ):
        partitions = consumer.partitions_for(options.topic)
        consumer.assign([TopicPartition(options.topic, each.partition) for each in partitions])
        consumer.seek_to_end()
        for each in consumer.assignment():
            consumer.position(each)
        _print(_measure(producer, consumer, options))
    return 0


def _take_older_form(options: argparse.Namespace) -> None:
    if options.older:
        if len(options.older) not in (5, 6):
            raise ToolError(
                "Invalid number of arguments. Expected 5 or 6 positional arguments, "
                f"but got {len(options.older)}. Usage: bootstrap-server topic num-records producer-acks "
                "record-size [optional] command-config"
            )
        for name, value in zip(POSITIONAL, options.older, strict=False):
            setattr(options, name, Path(value) if name == "command_config" else value)
    for name in POSITIONAL[:5]:
        if getattr(options, name) is None:
            raise ToolError(f"--{name.replace('_', '-')} is missing.")
    if options.producer_acks not in ("1", "all"):
        raise ToolError("Latency testing requires synchronous acknowledgement. Please use 1 or all.")
    for name in ("num_records", "record_size"):
        text = getattr(options, name)
        if not str(text).isdecimal() or int(text) == 0:
            raise ToolError(f"--{name.replace('_', '-')} must be a number above 0, not {text!r}.")
        setattr(options, name, int(text))


def _ensure_topic(admin: Admin, topic: str) -> None:
    if topic in admin.list_topics():
        return
    print(f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
    admin.create_topics([NewTopic(topic, 1, 1)])


def _measure(producer: Producer, consumer: Consumer, options: argparse.Namespace) -> list[int]:
    """The nanoseconds from before the send until the record was received, one per record."""
    source = random.Random(0)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    key = bytes(source.choices(letters, k=options.record_key_size)) or None
    header_value = None if options.record_header_size < 0 else b"V" * options.record_header_size
    headers = [("K" * options.record_header_key_size, header_value)] * options.num_headers
    latencies: list[int] = []
    with progress("records", options.num_records) as advance:
        for number in range(options.num_records):
            value = bytes([source.choice(letters)]) * options.record_size
            begin = time.perf_counter_ns()
            producer.send(options.topic, value, key, headers=headers).result(RECEIVE_SECONDS_MAX)
            received = list(consumer.poll(RECEIVE_SECONDS_MAX))
            elapsed = time.perf_counter_ns() - begin
            if [record.value for record in received] != [value]:
                raise ToolError(
                    f"Sent 1 record and received {len(received)}: no other producer may write to this topic."
                )
            latencies.append(elapsed)
            advance(1)
            if number % REPORT_EVERY == 0 and not sys.stderr.isatty():
                print(f"{number}\t{elapsed / 1e6}")
    return latencies


def _print(latencies: list[int]) -> None:
    print(f"Avg latency: {sum(latencies) / len(latencies) / 1e6:.4f} ms")
    ordered = [each // 1_000_000 for each in sorted(latencies)]
    shares = {"50th": 0.5, "99th": 0.99, "99.9th": 0.999}
    texts = [f"{name} = {percentile(ordered, share)}" for name, share in shares.items()]
    print(f"Percentiles: {', '.join(texts)}")
