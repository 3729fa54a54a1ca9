"""What keeps a client from its work now: brokers that cannot be reached, topics that do not exist.

Each trouble is logged once when it begins, as a warning with its cause, then rarely, with how long it has
lasted, and once when it is over. A method that gives up after its timeout names the last cause (`explain`).
The event loop reports; any thread may call `explain`."""

import logging
import time
from collections.abc import Callable

from barnabas.client.errors import ErrorCode, KafkaError

_log = logging.getLogger("barnabas.client")
# The second warning about a trouble comes after this time, and then one each longer time.
REMINDER_SECONDS = 10.0
REMINDER_SECONDS_MAX = 60.0
# What usually passes by itself, such as a new topic without a leader, is logged only if it lasts this long.
PATIENCE_SECONDS = 1.0


def cause_of(error: KafkaError) -> str:
    """What an error says as a cause: with Kafka's name, unless it is about a connection."""
    return error.message if error.code is ErrorCode.NETWORK_EXCEPTION else str(error)


class _Trouble:
    def __init__(self, cause: str, since: float, warn_at: float) -> None:
        self.cause = cause
        self.since = since
        self.warn_at = warn_at
        self.is_logged = False


class Troubles:
    def __init__(self, client_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client_id = client_id
        self._clock = clock
        # By subject, for example a broker's address; the last one that was reported is the last entry.
        self._open: dict[str, _Trouble] = {}

    def failed(self, subject: str, cause: str, patience: float = 0.0) -> None:
        """Something with this subject has failed again, or for the first time."""
        now = self._clock()
        trouble = self._open.pop(subject, None) or _Trouble(cause, now, now + patience)
        self._open[subject] = trouble
        trouble.cause = cause
        if now >= trouble.warn_at:
            self._warn(trouble, now - trouble.since)

    def _warn(self, trouble: _Trouble, lasted: float) -> None:
        is_first = not trouble.is_logged
        duration = "" if is_first and lasted < PATIENCE_SECONDS else f", for {lasted:.0f} s"
        _log.warning("[%s] %s%s; trying again", self._client_id, trouble.cause, duration)
        trouble.is_logged = True
        trouble.warn_at += REMINDER_SECONDS if is_first else REMINDER_SECONDS_MAX

    def ended(self, subject: str) -> None:
        """The subject is fine; nothing happens if it was fine before."""
        if self._open and (trouble := self._open.pop(subject, None)) is not None and trouble.is_logged:
            lasted = self._clock() - trouble.since
            _log.info("[%s] %s is available after %.1f s", self._client_id, subject, lasted)

    def forget(self, subject: str) -> None:
        """Nobody needs the subject any more."""
        self._open.pop(subject, None)

    def explain(self) -> str:
        """The end of a sentence about a timeout: the last cause, if something is wrong now."""
        last = next(reversed(list(self._open.values())), None)
        return "" if last is None else f": {last.cause}"
