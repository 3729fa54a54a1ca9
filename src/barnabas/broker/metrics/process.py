"""This process under Prometheus' standard names, and how busy its event loop is."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import deque
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from barnabas.broker.metrics.families import Family, counter, gauge, gauges, labels
from barnabas.net.spinning import SpinningEventLoop

PROC = Path("/proc/self")
IDLE_WINDOW_SECONDS = 60.0


def collect() -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds", "CPU time of this process", usage.ru_utime + usage.ru_stime)
    yield gauge("process_resident_memory_max_bytes", "Largest resident size so far", usage.ru_maxrss * 1024)
    virtual_pages, resident_pages = map(int, (PROC / "statm").read_text().split()[:2])
    page_bytes = resource.getpagesize()
    yield gauge("process_virtual_memory_bytes", "Virtual memory", virtual_pages * page_bytes)
    yield gauge("process_resident_memory_bytes", "Resident memory", resident_pages * page_bytes)
    yield gauge("process_open_fds", "Open files and sockets", _open_files())
    yield gauge(
        "process_max_fds", "Most files and sockets allowed", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    )
    yield gauge("process_start_time_seconds", "Start of this process since the epoch", _start_seconds())
    yield gauges("barnabas_build_info", "1, with the version as a label", [(labels(version=release()), 1)])


def _open_files() -> int:
    directory = PROC / "fd"
    # Since Linux 6.2 the size is the number of files; before, it is 0 and the names must be counted.
    return directory.stat().st_size or sum(1 for _ in directory.iterdir())


def release() -> str:
    """The version of Barnabas that runs here."""
    # Not an import statement: the root package also names the clients, which the broker must not depend on.
    return str(import_module("barnabas").__version__)


@cache
def _start_seconds() -> float:
    # The name of the program may have spaces: it is in parentheses, and numbers follow.
    after_name = (PROC / "stat").read_text().rpartition(")")[2].split()
    ticks_since_boot = int(after_name[19])
    uptime_seconds = float(Path("/proc/uptime").read_text().split()[0])
    age_seconds = uptime_seconds - ticks_since_boot / os.sysconf("SC_CLK_TCK")
    return time.time() - age_seconds


class LoopIdle:
    """The share of time that the event loop had nothing to do, over the last minute of scrapes."""

    def __init__(self) -> None:
        # (time, idle seconds up to then), one per scrape.
        self._samples: deque[tuple[float, float]] = deque()

    def collect(self) -> Iterator[Family]:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SpinningEventLoop):
            # Another loop, such as that of a test, does not measure it.
            return
        now, idle_seconds = time.monotonic(), loop.idle_seconds
        yield counter("barnabas_loop_idle_seconds", "Time the event loop had nothing to do", idle_seconds)
        yield gauge(
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "Share of the last minute, 0 to 1, that the event loop had nothing to do",
            self._share(now, idle_seconds, loop.started_at),
        )

    def _share(self, now: float, idle_seconds: float, started_at: float) -> float:
        while len(self._samples) > 1 and self._samples[0][0] < now - IDLE_WINDOW_SECONDS:
            self._samples.popleft()
        before, idle_before = self._samples[0] if self._samples else (started_at, 0.0)
        self._samples.append((now, idle_seconds))
        return min(1.0, (idle_seconds - idle_before) / max(now - before, 1e-9))
