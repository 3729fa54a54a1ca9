"""Regular expressions that clients send: subscriptions to topics, and filters of transactional ids.

Kafka takes RE2 expressions, and so do we, with RE2 itself: its matching time grows with the length of the
name times the size of the expression. A backtracking matcher such as Python's could need hours for one."""

from functools import cache
from typing import Any

from barnabas.errors import ErrorCode, KafkaError

# What RE2 may use for one expression. It holds about 10,000 instructions: an alternative of a thousand topic
# names fits, `(.?){1000}(.?){1000}` does not. The slowest expression of that size takes 3 ms for the longest
# topic name. RE2's Python module keeps 128 expressions, so 32 MB is the most that clients can fill.
MEMORY_BYTES_MAX = 256 * 1024
# How much of an expression an error message repeats.
SHOWN_CHARACTERS_MAX = 200


class Pattern:
    def __init__(self, expression: str) -> None:
        """Raises INVALID_REGULAR_EXPRESSION for what RE2 refuses, and for what is too large."""
        # The import takes 7 ms, which a broker without such clients can save.
        import re2

        try:
            self._compiled = re2.compile(expression, _options())
        except re2.error as error:
            shown = expression[:SHOWN_CHARACTERS_MAX]
            reason = error.args[0].decode(errors="replace")[:SHOWN_CHARACTERS_MAX]
            raise KafkaError(
                ErrorCode.INVALID_REGULAR_EXPRESSION, f"{shown!r} is not a regular expression: {reason}"
            ) from None

    def matches(self, name: str) -> bool:
        """Whether the expression matches the whole name, as in Kafka."""
        return self._compiled.fullmatch(name) is not None


@cache
def _options() -> Any:
    import re2

    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    # Only whether a name matches is asked, so groups need not be remembered.
    options.never_capture = True
    # RE2 would print errors to stderr; the client gets them in the answer.
    options.log_errors = False
    return options
