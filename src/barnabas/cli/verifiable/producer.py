"""`barnabas verifiable-producer`: sends increasing numbers and prints which were acknowledged."""

import argparse
import itertools
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from barnabas.cli.connecting import add_connection, client_settings
from barnabas.cli.perf.pace import Pace
from barnabas.cli.verifiable import print_event
from barnabas.client import Producer
from barnabas.client.errors import KafkaError
from barnabas.client.keys import PRODUCER_KEYS
from barnabas.client.types import RecordMetadata

DESCRIPTION = """\
Send increasing numbers to a topic and print one JSON object per event, so that a test knows which records
were acknowledged. Runs until --max-messages, SIGTERM or Ctrl-C."""
EXAMPLES = """\
  barnabas verifiable-producer --bootstrap-server localhost:9092 --topic numbers --max-messages 100
  barnabas verifiable-producer --bootstrap-server localhost:9092 --topic numbers --throughput 10
  --repeating-keys 5
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, config_flags=("--command-config", "--producer.config"))
    add = parser.add_argument
    add("--topic", required=True, help="the topic to write to")
    add("--max-messages", type=int, default=-1, metavar="N", help="how many (-1: until a signal)")
    add("--throughput", type=int, default=-1, metavar="N", help="records per second (-1: no limit)")
    add("--acks", type=int, default=-1, choices=(0, 1, -1), help="0, 1 or -1 (the default)")
    add("--message-create-time", type=int, default=-1, metavar="MS", help="the time of the first record")
    add("--value-prefix", type=int, metavar="N", help="values are N.0, N.1, ...")
    add("--repeating-keys", type=int, metavar="N", help="keys are 0 to N-1, again and again")


class _Sender:
    def __init__(self, producer: Producer, options: argparse.Namespace) -> None:
        self._producer = producer
        self._options = options
        self._start_ms = _now_ms()
        self.sent = 0
        self.acked = 0
        self.stop = threading.Event()

    def run(self) -> None:
        most = self._options.max_messages
        pace = Pace(self._options.throughput)
        for number in itertools.count() if most < 0 else range(most):
            if self.stop.is_set():
                return
            self._send(number)
            pace.keep(self.sent)

    def _send(self, number: int) -> None:
        options = self._options
        prefix = "" if options.value_prefix is None else f"{options.value_prefix}."
        value = f"{prefix}{number}"
        key = None if options.repeating_keys is None else str(number % max(1, options.repeating_keys))
        extra: dict[str, Any] = {}
        if options.message_create_time >= 0:
            extra["timestamp"] = options.message_create_time + _now_ms() - self._start_ms
        self.sent += 1
        encoded = None if key is None else key.encode()
        try:
            self._producer.send(
                options.topic,
                value.encode(),
                encoded,
                on_delivery=partial(self._delivered, key, value),
                **extra,
            )
        except KafkaError as error:
            self._delivered(key, value, None, error)

    def _delivered(
        self, key: str | None, value: str, metadata: RecordMetadata | None, error: Exception | None
    ) -> None:
        topic = self._options.topic
        if error is None and metadata is not None:
            self.acked += 1
            place = {"offset": metadata.offset, "topic": topic, "partition": metadata.partition}
            print_event("producer_send_success", key=key, value=value, **place)
        else:
            what = {"exception": type(error).__name__, "message": str(error), "topic": topic}
            print_event("producer_send_error", key=key, value=value, **what)


def run(options: argparse.Namespace) -> int:
    # No retries, as in Kafka's tool: a test wants to see every failure. The file may say otherwise.
    settings = {"acks": str(options.acks), "retries": 0, "enable.idempotence": options.acks == -1}
    settings |= client_settings(options, keys=PRODUCER_KEYS)
    if settings["enable.idempotence"] is True:
        # An idempotent producer must be allowed to retry.
        settings.pop("retries")
    started = time.monotonic()
    with Producer(settings) as producer:
        sender = _Sender(producer, options)
        _stop_by_signals(sender.stop)
        print_event("startup_complete")
        with suppress(KeyboardInterrupt):
            sender.run()
    print_event("shutdown_complete")
    rate = sender.acked / max(time.monotonic() - started, 1e-3)
    print_event(
        "tool_data",
        sent=sender.sent,
        acked=sender.acked,
        target_throughput=options.throughput,
        avg_throughput=rate,
    )
    return 0 if sender.acked == sender.sent else 1


def _stop_by_signals(stop: threading.Event) -> None:
    def caught(number: int, frame: FrameType | None) -> None:
        stop.set()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, caught)


def _now_ms() -> int:
    return int(time.time() * 1000)
