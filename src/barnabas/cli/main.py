"""`barnabas <command>`: finds the command, runs it, turns what goes wrong into a sentence and an exit code.

A command is a module with DESCRIPTION, EXAMPLES, add_arguments(parser) and run(options); it is imported only
when it is asked for, so that every command starts as fast as it can."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn, Protocol, cast

from barnabas import __version__
from barnabas.cli.failures import explained


class Command(Protocol):
    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int: ...


class Row(NamedTuple):
    module: str
    help: str
    # Kafka's script of the same purpose: bin/<script>.sh calls the command.
    script: str | None = None


COMMANDS: dict[str, Row] = {
    "start": Row("start", "run a broker until it is told to stop", "kafka-server-start"),
    "topics": Row("topics", "create, list, describe, alter and delete topics", "kafka-topics"),
    "configs": Row("configs", "show and change settings of topics, brokers and groups", "kafka-configs"),
    "cluster": Row("cluster", "the cluster's id and its brokers", "kafka-cluster"),
    "broker-api-versions": Row(
        "broker_api_versions", "which requests brokers take", "kafka-broker-api-versions"
    ),
    "log-dirs": Row("log_dirs", "what is in the directories of brokers", "kafka-log-dirs"),
    "get-offsets": Row("get_offsets", "first, last and other offsets of partitions", "kafka-get-offsets"),
    "delete-records": Row("delete_records", "delete records before an offset", "kafka-delete-records"),
    "acls": Row("acls", "who may do what (not in this release)", "kafka-acls"),
    "reassign-partitions": Row(
        "reassign_partitions", "move partitions (needs a cluster)", "kafka-reassign-partitions"
    ),
    "leader-election": Row(
        "leader_election", "elect leaders of partitions (needs a cluster)", "kafka-leader-election"
    ),
    "run-class": Row("run_class", "the command that a class of Kafka stands for", "kafka-run-class"),
    "dump-log": Row("dump_log", "print what files of a log hold", "kafka-dump-log"),
    "producer-perf-test": Row(
        "perf.producer", "send many records and tell how fast", "kafka-producer-perf-test"
    ),
    "consumer-perf-test": Row(
        "perf.consumer", "read many records and tell how fast", "kafka-consumer-perf-test"
    ),
    "e2e-latency": Row("perf.latency", "measure the way from sender to reader", "kafka-e2e-latency"),
    "console-producer": Row(
        "console_producer", "write lines of standard input to a topic", "kafka-console-producer"
    ),
    "console-consumer": Row(
        "console_consumer", "print the records of topics, as bytes or JSON", "kafka-console-consumer"
    ),
    "consumer-groups": Row(
        "consumer_groups", "list, describe, reset and delete consumer groups", "kafka-consumer-groups"
    ),
    "transactions": Row("transactions", "list, describe and repair transactions", "kafka-transactions"),
    "pipeline": Row("pipeline", "run data pipelines on Spark"),
    "audit": Row("audit", "find gaps, duplicates and damage in topics or log directories, on Spark"),
    "mirror": Row("mirror", "copy topics into another cluster, with the offsets of groups, on Spark"),
    "backfill": Row("backfill", "send a table to a topic, on Spark"),
    "completion": Row("completion", "print a completion script for bash, zsh or fish"),
}


NO_ZOOKEEPER = (
    "There is no ZooKeeper to ask: use --bootstrap-server HOST:PORT with the address of a broker, "
    "in place of --zookeeper."
)


class Parser(argparse.ArgumentParser):
    """Wrong usage is told in one sentence and ends with 1, as Kafka's tools do."""

    def error(self, message: str) -> NoReturn:
        sentence = message if message.endswith(".") else f"{message}."
        self.exit(1, f"{sentence[0].upper()}{sentence[1:]} See `{self.prog} --help`.\n")


def load(name: str) -> Command:
    return cast(Command, import_module(f"barnabas.cli.{COMMANDS[name].module}"))


def parser_of(name: str) -> argparse.ArgumentParser:
    command = load(name)
    parser = Parser(
        prog=f"barnabas {name}",
        description=command.DESCRIPTION,
        epilog=f"examples:\n{command.EXAMPLES}" if command.EXAMPLES else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"barnabas {__version__}")
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)
    return parser


def overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {row.help}" for name, row in COMMANDS.items()]
    return "\n".join(
        [
            "usage: barnabas <command> [options]",
            "",
            "A Kafka-compatible event log. Start a broker, then use any Kafka client with it.",
            "",
            "commands:",
            *lines,
            "",
            "options:",
            "  --help      this text; `barnabas <command> --help` teaches the command",
            "  --version   the version",
            "",
            "example: barnabas start --port 9092 --data-dir ./data",
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("--help", "-h", "help"):
        print(overview(), end="")
        return 0 if given else 1
    if given[0] == "--version":
        print(f"barnabas {__version__}")
        return 0
    name = given[0]
    if name not in COMMANDS:
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        print(f"barnabas has no command {name!r}.{meant} `barnabas --help` lists them.", file=sys.stderr)
        return 1
    if any(word.partition("=")[0] == "--zookeeper" for word in given[1:]):
        print(NO_ZOOKEEPER, file=sys.stderr)
        return 1
    options = parser_of(name).parse_args(given[1:])
    return explained(options.run, options)


if __name__ == "__main__":
    sys.exit(main())
