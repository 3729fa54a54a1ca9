"""The checker on a history of a million events."""

import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EVENTS = 1_000_000
ADDRESS_SPACE_BYTES = 1_500_000_000
KEYS = [f"events-{partition}" for partition in range(4)]
Operation = tuple[int, str, list[Any], list[Any]]  # process, function, and what is invoked and completed


def operations() -> Iterator[Operation]:
    """Eight clients that write, some of them in transactions that also read, and four that only read."""
    choice = random.Random(1)
    logs: dict[str, list[tuple[int, int]]] = {key: [] for key in KEYS}
    ends = dict.fromkeys(KEYS, 0)
    positions = {process: dict.fromkeys(KEYS, 0) for process in range(13)}
    values = count()

    def send() -> tuple[list[Any], list[Any]]:
        key, value = choice.choice(KEYS), next(values)
        offset = ends[key]
        ends[key] += choice.choice((1, 1, 1, 2))
        logs[key].append((offset, value))
        return ["send", key, value], ["send", key, [offset, value]]

    def poll(process: int, most: int) -> list[Any]:
        result = {}
        for key in KEYS:
            start = positions[process][key]
            result[key] = logs[key][start : start + most]
            positions[process][key] += len(result[key])
        return ["poll", result]

    for number in range(EVENTS // 2):
        writer, reader = choice.randrange(8), 8 + choice.randrange(4)
        kind = number % 5
        if kind < 2:
            invoked, completed = send()
            yield writer, "send", [invoked], [completed]
        elif kind == 2:
            polled = poll(writer, most=1)
            sends = [send(), send()]
            invoked, completed = ([each[side] for each in sends] for side in (0, 1))
            yield writer, "txn", [["poll"], *invoked], [polled, *completed]
        else:
            yield reader, "poll", [["poll"]], [poll(reader, most=5)]
    while (polled := poll(12, most=500)) and any(polled[1].values()):
        yield 12, "poll", [["poll"]], [polled]


def write_history(path: Path) -> None:
    times = count()
    with path.open("w") as file:
        for process, function, invoked, completed in operations():
            for type, value in ("invoke", invoked), ("ok", completed):
                event = {"time": next(times), "process": process, "type": type, "function": function}
                file.write(json.dumps(event | {"value": value}) + "\n")


@pytest.mark.slow
def test_a_million_events_are_checked_without_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_history(path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.jepsen.checker", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found" in done.stdout
