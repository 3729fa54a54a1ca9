"""The processes of a session (setsid) in Linux, for tests that kill a driver with all its processes."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def session_of(leader: int) -> dict[int, str]:
    """The processes of the session that a process leads, with their command lines; dead ones are left out."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*"):
        # A process may end while its files are read.
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, session = path.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                processes[int(path.name)] = path.joinpath("cmdline").read_text().replace("\0", " ")
    return processes


def kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
