"""CPU time and resident memory of another process and its children, from /proc; and what a load cost."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.figures import Sample, latency_sample

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    # The second field is the program's name in parentheses and may hold anything, so count from its end.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def process_family(pid: int) -> list[int]:
    """The process and all its descendants that still run."""
    parents = dict(_parents())
    family = [pid]
    for member in family:
        family.extend(child for child, parent in parents.items() if parent == member)
    return family


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                yield int(entry.name), int(_stat(int(entry.name))[1])


def cpu_seconds(pid: int) -> float:
    """User and system time so far: all threads, children that run, and children that have ended."""
    ticks = 0
    for member in process_family(pid):
        try:
            ticks += sum(map(int, _stat(member)[11:15]))
        except (FileNotFoundError, ProcessLookupError):
            if member == pid:
                raise
    return ticks / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Resident memory of the process and its children."""
    return _memory(pid, "VmRSS:")


def own_bytes(pid: int) -> int:
    """The same without the pages of files, such as libraries: the system drops those when it needs memory."""
    return _memory(pid, "RssAnon:")


def _memory(pid: int, row: str) -> int:
    total = sum(_status(member, row) for member in process_family(pid))
    if not total:
        raise ProcessLookupError(f"process {pid} has no resident memory: it has ended")
    return total


def descriptors(pid: int) -> int:
    """Files and sockets that the process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _status(pid: int, row: str) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a child that has just ended has none
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(row):
                return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True, slots=True)
class Load:
    """What one run moved, how long it took, what it cost the broker, and the broker's memory afterwards."""

    requests: int
    bytes: int
    seconds: float
    cpu_seconds: float
    resident_bytes: int
    latencies: tuple[float, ...] = ()

    @property
    def cpu_us_per_request(self) -> float:
        return self.cpu_seconds * 1e6 / self.requests

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / 1e6 / self.seconds

    def sample(self) -> Sample:
        values = {
            "megabytes_per_second": self.megabytes_per_second,
            "requests_per_second": self.requests / self.seconds,
            "cpu_us_per_request": self.cpu_us_per_request,
            "cpu_seconds_per_gigabyte": self.cpu_seconds / (self.bytes / 1e9),
            "resident_megabytes": self.resident_bytes / 1e6,
        }
        if not self.latencies:
            return Sample(values)
        others = {name: values[name] for name in ("cpu_us_per_request", "resident_megabytes")}
        return latency_sample(self.latencies, **others)


class Meter:
    """Around a load: `with Meter(pid) as meter: ...`, then `meter.load(requests, bytes, seconds)`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = self._cost = 0.0
        self._resident = 0

    def __enter__(self) -> "Meter":
        self._before = cpu_seconds(self._pid)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._cost = cpu_seconds(self._pid) - self._before
            self._resident = resident_bytes(self._pid)

    def load(self, requests: int, size: int, seconds: float, latencies: tuple[float, ...] = ()) -> Load:
        return Load(requests, size, seconds, self._cost, self._resident, latencies)
