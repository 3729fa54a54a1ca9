"""Parses the options of a command without running it."""

import argparse

from barnabas.cli.main import parser_of

SERVER = ("--bootstrap-server", "localhost:1")


def parsed(command: str, *arguments: str) -> argparse.Namespace:
    return parser_of(command).parse_args([*arguments, *SERVER])
