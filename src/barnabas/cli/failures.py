"""What a user sees when a command fails: one sentence on standard error, and an exit code that is not 0."""

import argparse
import os
import sys
from collections.abc import Callable

from barnabas.errors import KafkaError

# 128 + the signal's number, as shells report a program that was interrupted, or whose reader has gone.
INTERRUPTED = 130
READER_GONE = 141


class ToolError(Exception):
    """The sentence a user is told; it names the cause and the remedy."""


def explained(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run the command; no traceback reaches a user who has not asked for it with BARNABAS_TRACEBACK=1."""
    try:
        exit_code = run(options)
        sys.stdout.flush()
        return exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `barnabas ... | head` has seen enough. What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except (ToolError, KafkaError, OSError, ImportError) as error:
        if os.environ.get("BARNABAS_TRACEBACK"):
            raise
        print(f"Error: {sentence_of(error)}", file=sys.stderr)
        return 1


def sentence_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error)
