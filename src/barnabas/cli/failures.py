"""What a user sees when a command fails: one sentence on standard error, and an exit code that is not 0.

A command for many items tries all of them and prints one sentence for each that failed."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from barnabas.errors import KafkaError

# 128 + the number of the signal, as shells report a program that was interrupted or that wrote to a closed
# pipe.
INTERRUPTED = 130
PIPE_CLOSED = 141

_K = TypeVar("_K")
_V = TypeVar("_V")


class ToolError(Exception):
    """A sentence for the user that names the cause and says what to do."""


def run_command(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run the command and print errors as sentences; BARNABAS_TRACEBACK=1 shows tracebacks instead."""
    try:
        exit_code = run(options)
        sys.stdout.flush()
        return exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Do not try to write the buffered rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (ToolError, KafkaError, OSError, ImportError) as error:
        if os.environ.get("BARNABAS_TRACEBACK"):
            raise
        print(f"Error: {sentence_of(error)}", file=sys.stderr)
        return 1


def sentence_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        if error.filename is not None:
            return f"{error.filename}: {error.strerror}."
        return error.strerror if error.strerror.endswith(".") else f"{error.strerror}."
    return str(error)


def results_and_errors(
    ask: Callable[[], Mapping[_K, _V] | None],
) -> tuple[dict[_K, _V], dict[_K, KafkaError]]:
    """The outcome of a call of the admin client for many items: the results and the errors, by item."""
    # Imported late: commands that need no client start faster without it.
    from barnabas.client.admin.types import AdminError

    try:
        return dict(ask() or {}), {}
    except AdminError as error:
        return error.results, error.errors


def print_errors(errors: Mapping[_K, KafkaError]) -> int:
    """Print one sentence per item on standard error. Returns the exit code."""
    for item, error in errors.items():
        print(f"Error: {item}: {error.message}", file=sys.stderr)
    return 1 if errors else 0
