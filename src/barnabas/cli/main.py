"""`barnabas <command>`: finds the command, runs it, and turns errors into a sentence and an exit code.

A command is a module with DESCRIPTION, EXAMPLES, add_arguments(parser) and run(options). Only the module of
the given command is imported, so that every command starts fast."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn, Protocol, cast

from barnabas import __version__
from barnabas.cli.failures import run_command


class Command(Protocol):
    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int: ...


class Row(NamedTuple):
    module: str
    help: str
    # The name of Kafka's script for the same purpose: bin/<script>.sh runs the command.
    script: str | None = None


COMMANDS: dict[str, Row] = {
    "start": Row("start", "run a broker until SIGTERM or Ctrl-C", "kafka-server-start"),
    "server-stop": Row("server_stop", "stop brokers of this machine cleanly", "kafka-server-stop"),
    "storage": Row("storage", "prepare data directories; print a new cluster id", "kafka-storage"),
    "topics": Row("topics", "create, list, describe, alter and delete topics", "kafka-topics"),
    "configs": Row("configs", "show and change settings of topics, brokers and groups", "kafka-configs"),
    "metadata": Row("metadata", "print the metadata of a cluster or a broker; first SCRAM credentials"),
    "zookeeper": Row("zookeeper", "run a ZooKeeper server for a cluster"),
    "cluster": Row("cluster", "start a cluster on this machine, or show its state", "kafka-cluster"),
    "broker-api-versions": Row(
        "broker_api_versions", "which APIs brokers support", "kafka-broker-api-versions"
    ),
    "features": Row("features", "describe and change features of a cluster", "kafka-features"),
    "metadata-quorum": Row(
        "metadata_quorum", "who is the controller; there is no quorum", "kafka-metadata-quorum"
    ),
    "client-metrics": Row(
        "client_metrics", "subscriptions to the metrics of clients", "kafka-client-metrics"
    ),
    "log-dirs": Row("log_dirs", "partitions in the log directories of brokers", "kafka-log-dirs"),
    "get-offsets": Row("get_offsets", "first, last and other offsets of partitions", "kafka-get-offsets"),
    "delete-records": Row("delete_records", "delete records before an offset", "kafka-delete-records"),
    "acls": Row("acls", "list, add and remove access control lists", "kafka-acls"),
    "delegation-tokens": Row(
        "delegation_tokens", "create, renew, expire and describe delegation tokens", "kafka-delegation-tokens"
    ),
    "reassign-partitions": Row(
        "reassign_partitions", "move partitions between brokers", "kafka-reassign-partitions"
    ),
    "leader-election": Row("leader_election", "elect leaders of partitions", "kafka-leader-election"),
    "replica-verification": Row(
        "replica_verification", "compare the replicas of partitions", "kafka-replica-verification"
    ),
    "run-class": Row("run_class", "run a command by the name of Kafka's Java class", "kafka-run-class"),
    "dump-log": Row("dump_log", "print the contents of log files", "kafka-dump-log"),
    "producer-perf-test": Row(
        "perf.producer", "send many records and print the throughput", "kafka-producer-perf-test"
    ),
    "consumer-perf-test": Row(
        "perf.consumer", "read many records and print the throughput", "kafka-consumer-perf-test"
    ),
    "e2e-latency": Row("perf.latency", "measure the time from producer to consumer", "kafka-e2e-latency"),
    "console-producer": Row(
        "console_producer", "write lines of standard input to a topic", "kafka-console-producer"
    ),
    "console-consumer": Row(
        "console_consumer", "print the records of topics, as bytes or JSON", "kafka-console-consumer"
    ),
    "consumer-groups": Row(
        "consumer_groups", "list, describe, reset and delete consumer groups", "kafka-consumer-groups"
    ),
    "groups": Row("groups", "list groups of all types", "kafka-groups"),
    "share-groups": Row(
        "share_groups", "list share groups, which Barnabas does not have", "kafka-share-groups"
    ),
    "console-share-consumer": Row(
        "share_consumer", "says what there is instead of share groups", "kafka-console-share-consumer"
    ),
    "streams-groups": Row(
        "streams_groups", "list streams groups, which Barnabas does not have", "kafka-streams-groups"
    ),
    "streams-application-reset": Row(
        "streams_reset", "let an application of Kafka Streams begin again", "kafka-streams-application-reset"
    ),
    "verifiable-producer": Row(
        "verifiable.producer", "send numbers and print which were acknowledged", "kafka-verifiable-producer"
    ),
    "verifiable-consumer": Row(
        "verifiable.consumer", "print what a group member reads, as JSON", "kafka-verifiable-consumer"
    ),
    "transactions": Row("transactions", "list, describe and repair transactions", "kafka-transactions"),
    "backup": Row("backup", "copy topics and offsets to a directory or an object store"),
    "restore": Row("backup.restoring", "bring topics and offsets of a backup back, and check it"),
    "console": Row("console", "serve a web page that shows and changes a cluster"),
    "pipeline": Row("pipeline", "run data pipelines on Spark"),
    "audit": Row("audit", "find gaps, duplicates and damage in topics or log directories, on Spark"),
    "mirror": Row("mirror", "copy topics into another cluster, with the offsets of groups, on Spark"),
    "backfill": Row("backfill", "send a table to a topic, on Spark"),
    "doctor": Row("doctor", "check what is needed, and say what to do about each problem"),
    "version": Row("version", "print the versions of Barnabas and of what it uses"),
    "completion": Row("completion", "print a completion script for bash, zsh or fish"),
}


# The others send requests to brokers.
ZOOKEEPER_COMMANDS = ("cluster", "doctor", "metadata")
NO_ZOOKEEPER = (
    "Tools do not talk to ZooKeeper: use --bootstrap-server HOST:PORT with the address of a broker "
    "instead of --zookeeper."
)


class Parser(argparse.ArgumentParser):
    """Wrong usage prints one sentence and exits with code 1, as in Kafka's tools."""

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
            "  --help      this text; `barnabas <command> --help` explains the command",
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
        print(
            f"barnabas has no command {name!r}.{meant} `barnabas --help` lists the commands.", file=sys.stderr
        )
        return 1
    if name not in ZOOKEEPER_COMMANDS and any(word.partition("=")[0] == "--zookeeper" for word in given[1:]):
        print(NO_ZOOKEEPER, file=sys.stderr)
        return 1
    options = parser_of(name).parse_args(given[1:])
    return run_command(options.run, options)


if __name__ == "__main__":
    sys.exit(main())
