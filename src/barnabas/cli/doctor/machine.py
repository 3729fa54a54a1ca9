"""Checks of this machine: Python, programs, disks, limits, the clock."""

import ctypes
import errno
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.doctor.finding import Finding, ok, problem

JAVA_MIN = 17
PYTHON_MIN = (3, 11)
DESCRIPTORS_MIN = 10_000
FREE_BYTES_MIN = 1 << 30
FREE_SHARE_MIN = 0.05
# The kernel answers so if nobody keeps the clock synchronous.
CLOCK_UNSYNCHRONIZED = 5
# This release did not exist before.
EARLIEST_SECONDS = 1_735_689_600
PROGRAM_SECONDS_MAX = 30.0


def python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON_MIN:
        yield problem("python", version, "Install Python 3.11 or newer.")
    else:
        yield ok("python", f"{version}, {sys.executable}")
    from barnabas.kernels import shared

    if str(shared.__file__).endswith(".py"):
        yield problem(
            "kernels",
            "interpreted: the broker is many times slower",
            "Install the package again with gcc (`pip install .`), or install a wheel.",
        )
    else:
        yield ok("kernels", "compiled")


def compiler(*, is_needed: bool) -> Finding:
    """gcc and Python's headers: only for building the kernels from source."""
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        return problem(
            "gcc", "missing; only needed to install from source", "Install gcc.", is_needed=is_needed
        )
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return problem(
            "gcc",
            f"{gcc}, but Python.h is missing",
            "Install the headers of Python: python3-dev on Debian, python3-devel on Fedora.",
            is_needed=is_needed,
        )
    return ok("gcc", gcc)


def java(*, is_needed: bool) -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    remedy = f"Install Java {JAVA_MIN} or newer, or set JAVA_HOME to it."
    if program is None:
        found = "missing; only needed for Spark and for ZooKeeper"
        return problem("java", found, remedy, is_needed=is_needed)
    try:
        ran = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX
        )
        text = ran.stderr + ran.stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem("java", f"{program} does not run: {error}", remedy, is_needed=is_needed)
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    number = int(version[1]) if version else 0
    if number < JAVA_MIN:
        return problem("java", f"{program} is version {number or 'unknown'}", remedy, is_needed=is_needed)
    return ok("java", f"version {number}, {program}")


def disk(directory: Path) -> Finding:
    """Whether the directory can be written, and has space. It need not exist yet."""
    check = f"disk of {directory}"
    existing = directory.absolute()
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return problem(check, "full", "Make space, or choose another directory with --data-dir.")
        return problem(
            check,
            f"cannot be written: {error.strerror}",
            f"Give this user the right to write to {existing}, or choose another directory with --data-dir.",
        )
    usage = shutil.disk_usage(existing)
    found = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB free"
    if usage.free < FREE_BYTES_MIN or usage.free < usage.total * FREE_SHARE_MIN:
        return problem(
            check,
            found,
            "Make space, shorten log.retention.hours or log.retention.bytes, or use a larger disk.",
            is_needed=usage.free < FREE_BYTES_MIN,
        )
    return ok(check, found)


def descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{hard} (a broker raises its limit from {soft} to this)"
    if hard < DESCRIPTORS_MIN:
        return problem(
            "descriptors",
            found,
            f"Raise the hard limit to {DESCRIPTORS_MIN} or more: LimitNOFILE= in a systemd unit, `ulimit "
            "-Hn`, or "
            "/etc/security/limits.conf. Each connection and each segment in use needs one.",
        )
    return ok("descriptors", found)


def clock() -> Finding:
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    remedy = "Run a time service such as chrony or systemd-timesyncd: retention and timestamps use the clock."
    if time.time() < EARLIEST_SECONDS:
        return problem("clock", f"{now} is in the past", remedy)
    if _kernel_clock_state() == CLOCK_UNSYNCHRONIZED:
        return problem("clock", f"{now}, not synchronized", remedy, is_needed=False)
    return ok("clock", now)


def _kernel_clock_state() -> int:
    """The answer of adjtimex(2), which says whether a time service keeps the clock; -1 if it does not
    answer."""
    libc = ctypes.CDLL(None)
    # The structure has 208 bytes; with all of them 0 nothing is changed.
    return int(libc.adjtimex(ctypes.create_string_buffer(512)))
