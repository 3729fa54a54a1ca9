"""Checks history files that were kept: python -m tests.jepsen.checker FILE..."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.jepsen.checker import Rules, check
from tests.jepsen.history import HistoryError, merge


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.checker", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="all files of one run")
    parser.add_argument("--not-idempotent", action="store_true", help="producers may write a record twice")
    parser.add_argument("--read-uncommitted", action="store_true", help="consumers read open transactions")
    parser.add_argument("--not-read-to-end", action="store_true", help="there was no last read of everything")
    parser.add_argument(
        "--exactly-once",
        action="append",
        default=[],
        metavar="GROUP",
        help="this group processes every record in a transaction",
    )
    options = parser.parse_args(arguments)
    rules = Rules(
        idempotent=not options.not_idempotent,
        read_committed=not options.read_uncommitted,
        read_to_end=not options.not_read_to_end,
        exactly_once_groups=frozenset(options.exactly_once),
    )
    try:
        verdict = check(merge(options.files), rules)
    except (HistoryError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(verdict)
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
