"""How long to wait before trying again: doubling pauses with some chance in them, so that the clients of a
broker that went away do not all come back at the same moment."""

import random
from dataclasses import dataclass

JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    first_seconds: float
    max_seconds: float

    def seconds(self, failures: int) -> float:
        """The pause after so many failures in a row; none after none."""
        if failures <= 0 or self.first_seconds <= 0:
            return 0.0
        # The exponent is bounded, or a long outage makes a number no float holds.
        pause = min(self.first_seconds * 2.0 ** min(failures - 1, 30), self.max_seconds)
        return max(pause, 0.0) * random.uniform(1 - JITTER, 1 + JITTER)
