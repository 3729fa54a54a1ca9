"""The commands and programs of docs/tutorial.md run as they are there, and print what it shows.

Only two things differ: brokers choose their ports, and new groups do not wait for more members. `...` in the
page means any text."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
ADDRESS = "127.0.0.1:9092"
BLOCK = re.compile(
    r"<!-- (start|save|run)(?:: ([\w.]+))? -->\n```\w+\n(.*?)```(?:\n\n```\n(.*?)```)?", re.DOTALL
)
SECONDS_MAX = 600


class Block(NamedTuple):
    kind: str
    argument: str
    content: str
    printed: str


BLOCKS = [Block(*groups) for groups in BLOCK.findall(PAGE)]


class Shop:
    """The directory of a reader, with the broker or cluster that the last `start` has started."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._addresses = ADDRESS
        self._started: subprocess.Popen[bytes] | None = None

    def start(self, block: Block) -> None:
        self.stop()
        command = block.content.strip().replace("--port 9092", "--port 0")
        command += " --override group.initial.rebalance.delay.ms=0"
        if "--ready-file" not in command:
            command += " --ready-file ready"
        ready = self.directory / command.partition("--ready-file ")[2].split()[0]
        with (self.directory / "printed").open("wb") as printed:
            self._started = subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                cwd=self.directory,
                stdout=printed,
                stderr=printed,
                env=ENVIRONMENT,
            )
        deadline = time.monotonic() + SECONDS_MAX
        while not (ready.exists() and ready.read_text().endswith(("\n", "}"))):
            assert self._started.poll() is None, (self.directory / "printed").read_text()
            assert time.monotonic() < deadline, (self.directory / "printed").read_text()
            time.sleep(0.05)
        text = ready.read_text().strip()
        self._addresses = json.loads(text)["bootstrap"] if text.startswith("{") else text

    def save(self, block: Block) -> None:
        (self.directory / block.argument).write_text(block.content.replace(ADDRESS, self._addresses))

    def run(self, block: Block) -> None:
        lines = []
        for command in block.content.strip().splitlines():
            done = subprocess.run(
                ["sh", "-c", command.replace(ADDRESS, self._addresses)],
                cwd=self.directory,
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            lines += done.stdout.splitlines()
        # The order of records in different partitions is not fixed.
        assert matches(block.printed, sorted(lines) if block.argument == "sorted" else lines), "\n".join(
            lines
        )

    def stop(self) -> None:
        if self._started is not None:
            self._started.send_signal(signal.SIGTERM)
            self._started.wait(SECONDS_MAX)
            self._started = None


ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def matches(shown: str, lines: list[str]) -> bool:
    """Whether these lines were printed; spaces at their ends do not count."""
    wanted = "\n".join(line.rstrip() for line in shown.splitlines())
    pattern = re.escape(wanted).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in lines), re.DOTALL) is not None


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.stop()


def steps_from(start: str) -> list[Block]:
    """The block that starts this broker or cluster, and the blocks up to the next start."""
    starts = [number for number, block in enumerate(BLOCKS) if block.kind == "start"]
    (first,) = [number for number in starts if BLOCKS[number].argument == start]
    return BLOCKS[first : next((number for number in starts if number > first), None)]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("start", ["broker", "cluster"])
def test_a_reader_gets_what_the_page_shows(start: str, shop: Shop) -> None:
    for block in steps_from(start):
        getattr(shop, block.kind)(block)


def test_the_test_finds_every_block_of_the_page() -> None:
    fences = PAGE.count("```") // 2
    printed = sum(bool(block.printed) for block in BLOCKS)
    assert fences == len(BLOCKS) + printed + 1  # the first block, which installs, is not run
    assert {block.argument for block in BLOCKS if block.kind == "start"} == {"broker", "cluster"}
