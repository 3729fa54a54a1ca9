"""Runs the commands of docs/command-line.md and of pages that go on from there, one after the other."""

import os
import re
import subprocess
from pathlib import Path

from tests.clients.broker_process import PROGRAM, BrokerProcess, running_broker

ROOT = Path(__file__).parents[2]
PAGES = ("command-line.md", "how-it-works/settings.md", "how-it-works/offsets.md")
BLOCKS = [
    re.findall(r"<!-- run -->\n```sh\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    for page in PAGES
]
LINES = [line for (block,) in BLOCKS for line in block.splitlines() if line and not line.startswith("#")]


def run_line(line: str, broker: BrokerProcess, directory: Path) -> str:
    path = f"{PROGRAM.parent}:{ROOT / 'bin'}:{os.environ['PATH']}"
    command = line.replace("localhost:9092", broker.bootstrap)
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_line_runs(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as broker:
        printed = {line: run_line(line, broker, tmp_path) for line in LINES}
    (consumed,) = [out for line, out in printed.items() if "print.key" in line]
    assert consumed == "42\tone coffee\n"
    assert len(LINES) > 15
