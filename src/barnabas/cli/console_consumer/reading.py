"""Reads until the limit, the timeout or a signal; then leaves the group and prints the number of records."""

import argparse
import re
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from barnabas.cli.connecting import admin_of
from barnabas.cli.console_consumer.formatters import Formatter, formatter_of, json_line
from barnabas.cli.console_consumer.options import (
    check,
    consumer_settings,
    formatter_properties,
    start_offset,
)
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.signals import woken_by_signals

if TYPE_CHECKING:
    from barnabas.client import Consumer
    from barnabas.kernels.record_decode import ConsumerRecord

# How long a poll waits. It may be long, since a signal ends it at once.
POLL_SECONDS = 60.0
_BY_SIGNAL = 128


def run(options: argparse.Namespace) -> int:
    from barnabas.client import Consumer
    from barnabas.client.errors import WakeupError

    check(options)
    begin = start_offset(options)
    pattern = None if options.include is None else pattern_of(options.include)
    formatter = json_line if options.json else formatter_of(options.formatter, formatter_properties(options))
    settings = consumer_settings(options)
    check_topic(options)
    reading = Reading(Consumer(settings), formatter, options)
    stopped_by: list[int] = []
    try:
        with woken_by_signals(reading.consumer, stopped_by):
            try:
                with suppress(WakeupError):
                    reading.start(begin, pattern)
                    reading.read()
            finally:
                reading.close()
    finally:
        print(f"Processed a total of {reading.count} messages", file=sys.stderr)
    if options.enable_systest_events:
        print("shutdown_complete")
    return _BY_SIGNAL + stopped_by[0] if stopped_by else 0


def check_topic(options: argparse.Namespace) -> None:
    """Warn about a topic or partition that does not exist: a consumer would wait for it silently."""
    from barnabas.errors import ErrorCode

    with admin_of(options) as admin:
        if options.topic is None:
            return
        topics, errors = results_and_errors(lambda: admin.describe_topics([options.topic]))
    for error in errors.values():
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ToolError(f"Topic {options.topic!r} cannot be read: {error.message}")
        print(f"Warning: There is no topic {options.topic!r} yet; waiting for it.", file=sys.stderr)
    for described in topics.values():
        numbers = {info.partition for info in described.partitions}
        if options.partition is not None and options.partition not in numbers:
            raise ToolError(
                f"Topic {options.topic!r} has no partition {options.partition}: it has {len(numbers)}, "
                "numbered from 0."
            )


class Reading:
    def __init__(self, consumer: "Consumer", formatter: Formatter, options: argparse.Namespace) -> None:
        self.consumer = consumer
        self.count = 0
        self._formatter = formatter
        self._options = options
        self._left: deque[ConsumerRecord] = deque()

    def start(self, begin: int | str, pattern: re.Pattern[str] | None) -> None:
        from barnabas.client.types import TopicPartition

        options = self._options
        if options.partition is not None:
            partition = TopicPartition(options.topic, options.partition)
            self.consumer.assign([partition])
            if isinstance(begin, int):
                self.consumer.seek(partition, begin)
            elif begin == "earliest":
                self.consumer.seek_to_beginning(partition)
            else:
                self.consumer.seek_to_end(partition)
        else:
            self.consumer.subscribe([options.topic] if pattern is None else pattern)

    def read(self) -> None:
        output = sys.stdout.buffer
        timeout_ms = self._options.timeout_ms
        waits = timeout_ms is None or timeout_ms < 0
        while not self._is_enough():
            self._left.extend(self.consumer.poll(POLL_SECONDS if waits else timeout_ms / 1000))
            if not self._left and not waits:
                return
            try:
                self._write(output)
                output.flush()
            except BrokenPipeError:
                print("Unable to write to standard out, closing consumer.", file=sys.stderr)
                raise

    def _is_enough(self) -> bool:
        most = self._options.max_messages
        return most is not None and 0 <= most <= self.count

    def _write(self, output: BinaryIO) -> None:
        from barnabas.errors import KafkaError

        while self._left and not self._is_enough():
            record = self._left.popleft()
            self.count += 1
            try:
                shown = self._formatter(record)
            except KafkaError as error:
                where = f"{record.topic}-{record.partition} at offset {record.offset}"
                if not self._options.skip_message_on_error:
                    output.flush()
                    raise ToolError(
                        f"The record of {where} cannot be printed: {error}. "
                        "Use --skip-message-on-error to continue with the next one."
                    ) from error
                print(f"Error processing message, skipping {where}: {error}", file=sys.stderr)
                continue
            if shown is not None:
                output.write(shown)

    def close(self) -> None:
        """Leave the group. Seek back to the records that were not printed, so that they are not committed."""
        from barnabas.client.types import TopicPartition

        first_left: dict[TopicPartition, int] = {}
        for record in self._left:
            first_left.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        assigned = self.consumer.assignment()
        for partition, offset in first_left.items():
            if partition in assigned:
                self.consumer.seek(partition, offset)
        self.consumer.close()


def pattern_of(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ToolError(f"--include {text!r} is not a regular expression: {error}.") from error
