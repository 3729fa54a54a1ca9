"""A limit on how fast a tool sends."""

import time

# Shorter pauses are skipped; a later pause is longer instead.
SLEEP_SECONDS_MIN = 0.001


class Pace:
    """Limits the sender to `rate` records per second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._start = time.monotonic()

    def keep(self, sent: int) -> None:
        if self._rate > 0:
            ahead = sent / self._rate - (time.monotonic() - self._start)
            if ahead > SLEEP_SECONDS_MIN:
                time.sleep(ahead)
