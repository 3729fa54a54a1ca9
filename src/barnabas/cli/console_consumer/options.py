"""The options of console-consumer, and the settings of the consumer and the formatter from them."""

import argparse
import random
from pathlib import Path
from typing import Any

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError
from barnabas.cli.properties import add_pairs, known_settings, read_properties

DESCRIPTION = """\
Print the records of a topic, or of all topics that match a pattern. Values are written as bytes, one per
line; at the end, the number of records is printed to standard error. It runs until it is interrupted, unless
--max-messages or --timeout-ms is given."""
EXAMPLES = """\
  barnabas console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning
  barnabas console-consumer --bootstrap-server localhost:9092 --topic orders --partition 0 --offset 42 \\
      --max-messages 1 --property print.key=true --property print.headers=true
  barnabas console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning \\
      --timeout-ms 5000 --json | jq .value
  barnabas console-consumer --bootstrap-server localhost:9092 --topic __consumer_offsets --from-beginning \\
      --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter

formatter properties (--property):
  print.timestamp print.partition print.offset print.epoch print.headers print.key =false, print.value=true,
  key.separator=<tab>  line.separator=<newline>  headers.separator=,  null.literal=null
  key.deserializer value.deserializer headers.deserializer =StringDeserializer, LongDeserializer, ...
formatters (--formatter), by Kafka's class names of any version:
  DefaultMessageFormatter LoggingMessageFormatter NoOpMessageFormatter OffsetsMessageFormatter
  GroupMetadataMessageFormatter TransactionLogMessageFormatter
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, config_flags=("--command-config", "--consumer.config"))
    _add_what(parser)
    _add_until(parser)
    _add_shown(parser)
    parser.add_argument("--group", metavar="GROUP", help="the consumer group to join")
    parser.add_argument(
        "--isolation-level",
        choices=["read_committed", "read_uncommitted"],
        help="read_committed leaves out records of open and aborted transactions",
    )
    add_pairs(
        parser,
        ("--consumer-property", "--command-property"),
        "client_properties",
        "a setting of the consumer",
    )
    parser.add_argument(
        "--enable-systest-events", action="store_true", help="print shutdown_complete at the end"
    )
    # Old scripts pass this to choose between two consumers; now there is only one.
    parser.add_argument("--new-consumer", action="store_true", help=argparse.SUPPRESS)


def _add_what(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument(
        "--include", "--whitelist", dest="include", metavar="REGEX", help="read all topics that match"
    )
    parser.add_argument("--partition", type=int, help="read this partition only")
    parser.add_argument("--offset", help="where to begin in the partition: a number, earliest or latest")
    parser.add_argument(
        "--from-beginning",
        action="store_true",
        help="begin with the first record if the group has no committed offset",
    )


def _add_until(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-messages", type=int, metavar="N", help="stop after this many records")
    parser.add_argument(
        "--timeout-ms", type=int, metavar="MS", help="stop when no record arrives for this long"
    )
    parser.add_argument(
        "--skip-message-on-error",
        action="store_true",
        help="continue after a record that cannot be printed, instead of stopping",
    )


def _add_shown(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--formatter", metavar="CLASS", help="how records are printed, see below")
    add_pairs(
        parser,
        ("--property", "--formatter-property"),
        "formatter_properties",
        "what the formatter prints, see below",
    )
    parser.add_argument(
        "--formatter-config", type=Path, metavar="FILE", help="a properties file with the same keys"
    )
    parser.add_argument("--key-deserializer", metavar="CLASS", help="as the property key.deserializer")
    parser.add_argument("--value-deserializer", metavar="CLASS", help="as the property value.deserializer")
    parser.add_argument(
        "--json",
        action="store_true",
        help='print each record as one JSON object per line; bytes that are not UTF-8 become {"base64": ...}',
    )


def check(options: argparse.Namespace) -> None:
    """Refuse options that exclude each other, with Kafka's messages, since scripts may look for them."""
    if (options.topic is None) == (options.include is None):
        raise ToolError("Exactly one of --include/--topic is required.")
    if options.partition is not None:
        if options.topic is None:
            raise ToolError("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            raise ToolError("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        raise ToolError("The partition is required when offset is specified.")
    if options.json and options.formatter is not None:
        raise ToolError("Options json and formatter cannot be specified together.")


def start_offset(options: argparse.Namespace) -> int | str:
    """A number, "earliest" or "latest"."""
    given = options.offset
    if given is None:
        return "earliest" if options.from_beginning else "latest"
    word = str(given).lower()
    if word in ("earliest", "latest"):
        return word
    if not word.isdecimal():
        raise ToolError(
            f"The provided offset value '{given}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(word)


def consumer_settings(options: argparse.Namespace) -> dict[str, Any]:
    from barnabas.client.keys import CONSUMER_KEYS

    given = read_properties(options.command_config, options.client_properties, "--consumer-property")
    settings = {"client.id": "console-consumer", **known_settings(given, CONSUMER_KEYS)}
    settings["bootstrap.servers"] = options.bootstrap_server
    if options.isolation_level is not None:
        settings["isolation.level"] = options.isolation_level
    _set_group(options, settings)
    _set_reset(options, settings)
    return settings


def _set_group(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    named = {group for group in (options.group, settings.get("group.id")) if group is not None}
    if len(named) > 1:
        ids = ", ".join(f"'{group}'" for group in sorted(named))
        raise ToolError(
            "The group ids provided in different places (directly using '--group', via "
            f"'--consumer-property', or via '--consumer.config') do not match. Detected group ids: {ids}"
        )
    if named and options.partition is not None:
        raise ToolError("Options group and partition cannot be specified together.")
    if named:
        settings["group.id"] = named.pop()
        return
    settings["group.id"] = f"console-consumer-{random.randrange(100_000)}"
    # Nobody will use the offsets of a group with a random name again.
    settings.setdefault("enable.auto.commit", "false")


def _set_reset(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    reset = settings.get("auto.offset.reset")
    if reset is None:
        settings["auto.offset.reset"] = "earliest" if options.from_beginning else "latest"
    elif options.from_beginning and reset != "earliest":
        raise ToolError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )


def formatter_properties(options: argparse.Namespace) -> dict[str, str]:
    properties = read_properties(options.formatter_config, [], "--property")
    if options.key_deserializer:
        properties["key.deserializer"] = options.key_deserializer
    if options.value_deserializer:
        properties["value.deserializer"] = options.value_deserializer
    return {**properties, **read_properties(None, options.formatter_properties, "--property")}
