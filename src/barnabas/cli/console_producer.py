"""`barnabas console-producer`: every line of standard input becomes a record of a topic."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.connecting import add_connection, await_broker
from barnabas.cli.failures import ToolError
from barnabas.cli.line_reader import Line, LineReader
from barnabas.cli.properties import add_pairs, known_settings, read_properties

if TYPE_CHECKING:
    from barnabas.client import Producer
    from barnabas.client.types import RecordMetadata
    from barnabas.errors import KafkaError

DESCRIPTION = """\
Write records to a topic, one for each line of standard input. Lines are bytes and are not decoded.
Settings of the producer without an option keep the client's defaults."""
EXAMPLES = """\
  echo 'hello' | barnabas console-producer --bootstrap-server localhost:9092 --topic greetings
  barnabas console-producer --bootstrap-server localhost:9092 --topic orders \\
      --property parse.key=true --property key.separator=: --compression-codec zstd < orders.txt
  printf 'trace:17\\tkey1\\tvalue1\\n' | barnabas console-producer --bootstrap-server localhost:9092 \\
      --topic orders --property parse.headers=true --property parse.key=true

reader properties (--property):
  parse.key=false  key.separator=<tab>  parse.headers=false  headers.delimiter=<tab>  headers.separator=,
  headers.key.separator=:  null.marker=<none>  ignore.error=false
"""

READERS = ("LineMessageReader",)
# Options that set one setting of the producer each.
_SETTINGS = {
    "--batch-size": ("batch.size", "bytes collected for a partition before they are sent"),
    "--max-partition-memory-bytes": ("batch.size", "the same, by its older name"),
    "--max-memory-bytes": ("buffer.memory", "bytes of records that may wait to be sent"),
    "--max-block-ms": ("max.block.ms", "how long a send may wait for memory or metadata"),
    "--message-send-max-retries": ("retries", "how often a failed batch is sent again"),
    "--metadata-expiry-ms": ("metadata.max.age.ms", "metadata older than this is fetched again"),
    "--request-required-acks": ("acks", "who must write a record before it is confirmed: -1 or all, 1, 0"),
    "--request-timeout-ms": ("request.timeout.ms", "how long one request may take"),
    "--retry-backoff-ms": ("retry.backoff.ms", "the pause before a batch is sent again"),
    "--socket-buffer-size": ("send.buffer.bytes", "SO_SNDBUF of the sockets"),
    "--timeout": ("linger.ms", "how long a batch waits for more records"),
}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, config_flags=("--command-config", "--producer.config"))
    parser.add_argument("--topic", required=True, help="the topic to write to")
    add_pairs(
        parser,
        ("--property", "--reader-property"),
        "reader_properties",
        "how lines are read, see below",
    )
    parser.add_argument(
        "--reader-config", type=Path, metavar="FILE", help="a properties file with the same keys"
    )
    add_pairs(
        parser,
        ("--producer-property", "--command-property"),
        "client_properties",
        "a setting of the producer",
    )
    parser.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        choices=_CODECS,
        metavar="CODEC",
        help=f"how batches are compressed: {', '.join(_CODECS)}; gzip if no value is given",
    )
    parser.add_argument("--sync", action="store_true", help="wait for each record before reading the next")
    parser.add_argument("--line-reader", metavar="CLASS", help="LineMessageReader, the default")
    for flag, (key, text) in _SETTINGS.items():
        parser.add_argument(flag, dest=flag[2:].replace("-", "_"), metavar="N", help=f"{text} ({key})")


def run(options: argparse.Namespace) -> int:
    from barnabas.client import Producer
    from barnabas.client.config import producer_config

    _check_reader(options.line_reader)
    reader = LineReader(read_properties(options.reader_config, options.reader_properties, "--property"))
    failures = Failures(options.topic)
    settings = settings_of(options)
    await_broker(producer_config(settings).servers)
    with Producer(settings) as producer:
        for line in reader.records(_lines()):
            send(producer, options, line, failures)
    return 1 if failures.count else 0


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    from barnabas.client.keys import PRODUCER_KEYS

    given = read_properties(options.command_config, options.client_properties, "--producer-property")
    settings = {"client.id": "console-producer", **known_settings(given, PRODUCER_KEYS)}
    settings["bootstrap.servers"] = options.bootstrap_server
    if options.compression_codec is not None:
        settings["compression.type"] = options.compression_codec
    for flag, (key, _) in _SETTINGS.items():
        value = getattr(options, flag[2:].replace("-", "_"))
        if value is not None:
            settings[key] = value
    return settings


class Failures:
    """Reports each record that was not written; the others are still sent."""

    def __init__(self, topic: str) -> None:
        self.count = 0
        self._topic = topic

    def report(self, line: Line, error: "KafkaError") -> None:
        self.count += 1
        print(
            f"Error when sending message to topic {self._topic} with key: {_size(line.key)}, "
            f"value: {_size(line.value)} with error: {error}",
            file=sys.stderr,
        )


def send(producer: "Producer", options: argparse.Namespace, line: Line, failures: Failures) -> None:
    from barnabas.errors import ErrorCode, KafkaError

    def delivered(metadata: "RecordMetadata | None", error: KafkaError | None) -> None:
        if error is not None:
            failures.report(line, error)

    try:
        if line.headers:
            future = producer.send(
                options.topic, line.value, line.key, headers=line.headers, on_delivery=delivered
            )
        else:
            future = producer.send(options.topic, line.value, line.key, on_delivery=delivered)
    except KafkaError as error:
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
            raise
        failures.report(line, error)
        return
    if options.sync:
        # The callback reports a failure.
        future.exception()


def _check_reader(name: str | None) -> None:
    if name is not None and name.replace("$", ".").rpartition(".")[2] not in READERS:
        raise ToolError(
            f"--line-reader {name}: Java classes cannot be run here. Leave the option out to read lines, "
            "and convert the input before with another program."
        )


def _lines() -> Iterator[bytes]:
    """The lines of standard input; on a terminal, with a prompt before each."""
    source = sys.stdin.buffer
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield from source
        return
    while True:
        print(">", end="", flush=True)
        line = source.readline()
        if not line:
            return
        yield line


def _size(part: bytes | None) -> str:
    return "null" if part is None else f"{len(part)} bytes"
