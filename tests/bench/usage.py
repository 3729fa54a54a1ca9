"""CPU time and resident memory of another process, from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of the process so far, all its threads included."""
    # The second field is the program's name in parentheses and may hold anything, so count from its end.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no resident memory: it has ended")


@dataclass(frozen=True, slots=True)
class Load:
    """What one run moved, how long it took and what it cost the broker."""

    requests: int
    bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / 1e6 / self.seconds

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us_per_request(self) -> float:
        return self.cpu_seconds * 1e6 / self.requests

    @property
    def cpu_seconds_per_gigabyte(self) -> float:
        return self.cpu_seconds / (self.bytes / 1e9)
