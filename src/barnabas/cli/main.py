"""`barnabas <command>`: finds the command and runs it."""

import argparse
import sys
from collections.abc import Sequence

from barnabas import __version__
from barnabas.cli import start


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="barnabas",
        description="A Kafka-compatible event log. Start a broker, then use any Kafka client with it.",
        epilog="example: barnabas start --port 9092 --data-dir ./data",
    )
    parser.add_argument("--version", action="version", version=f"barnabas {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="<command>", required=True)
    start.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(arguments)
    exit_code: int = options.run(options)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
