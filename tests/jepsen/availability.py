"""What clients noticed of a fault: errors of sends, and how long no record was acknowledged."""

from collections.abc import Iterator

from tests.jepsen.history import History, Operation

NANOSECONDS = 1e9
# What a process of the load does on purpose, so it is no error of the cluster.
OWN_END = "the client ends before the commit"


def send_errors(history: History) -> Iterator[str]:
    """Sends and transactions that did not end well. The libraries repeat what can be repeated, so these are
    errors that an application sees."""
    for operation in history:
        is_write = operation.function in ("send", "txn") and operation.type in ("fail", "unknown")
        if is_write and operation.error != OWN_END:
            yield f"a client got an error: {operation}"


def acknowledgements(history: History) -> Iterator[tuple[str, Operation, Operation]]:
    """For each record of a send that was acknowledged: its log, the invocation and the completion."""
    invoked: dict[int, Operation] = {}
    for operation in history:
        if operation.type == "invoke":
            invoked[operation.process] = operation
        elif operation.function == "send":
            for _, key, _, *outcome in operation.value:
                if (outcome or [operation.type]) == ["ok"]:
                    yield key, invoked[operation.process], operation


def longest_pauses(history: History, topic: str) -> dict[str, float]:
    """For each partition of a topic: the most seconds without an acknowledgement of a record."""
    last: dict[str, int] = {}
    pauses: dict[str, float] = {}
    for key, _, done in acknowledgements(history):
        if key.rpartition("-")[0] == topic:
            pause = (done.time - last.get(key, done.time)) / NANOSECONDS
            pauses[key] = max(pause, pauses.get(key, 0.0))
            last[key] = done.time
    return pauses


def acknowledged_within(history: History, begin: float, end: float) -> Iterator[str]:
    """Records that were sent and acknowledged between two moments of the monotonic clock, in seconds: for a
    time in which no acknowledgement is possible."""
    for key, sent, done in acknowledgements(history):
        if sent.time > begin * NANOSECONDS and done.time < end * NANOSECONDS:
            yield f"{key} acknowledged a record although too few replicas were alive: {done}"
