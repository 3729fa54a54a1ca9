"""A member of a group as a process of its own, which may be killed: it commits each record it has told of.

    python -m tests.clients.member_process BOOTSTRAP GROUP TOPIC ASSIGNOR PROTOCOL

One line of JSON for each change of what it owns, and for each poll that gave records."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.clients.client import BrokerSaid
from tests.clients.consumers import ConfluentConsumer, Joining, Place

ROOT = Path(__file__).parent.parent.parent


def main(bootstrap: str, group: str, topic: str, assignor: str, protocol: str) -> None:
    joining = Joining(
        group, (topic,), assignor=assignor, protocol=protocol, session_timeout_ms=1500, poll_interval_ms=5000
    )
    consumer = ConfluentConsumer(bootstrap, joining)
    owned: frozenset[Place] = frozenset()
    while True:
        seen = consumer.poll(0.05)
        if seen:
            print(json.dumps({"seen": [[each.partition, each.offset] for each in seen]}), flush=True)
            try:
                consumer.commit()
            except BrokerSaid as refused:
                # Partitions moved on in between: their new owner reads these records again.
                print(json.dumps({"refused": refused.code}), flush=True)
        if consumer.assignment() != owned:
            owned = consumer.assignment()
            print(json.dumps({"owned": sorted(number for _, number in owned)}), flush=True)


class MemberProcess:
    def __init__(self, directory: Path, name: str, *arguments: str) -> None:
        self._output = directory / f"member-{name}.jsonl"
        command = [sys.executable, "-W", "ignore", "-m", "tests.clients.member_process", *arguments]
        with self._output.open("wb") as output, (directory / f"member-{name}.err").open("wb") as errors:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors)

    def told(self) -> list[dict[str, Any]]:
        """What it said so far; the last line may be cut off by the kill."""
        lines = self._output.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def owned(self) -> list[int]:
        """The partitions it said it has, unless it is no more."""
        if self.process.poll() is not None:
            return []
        told: list[list[int]] = [each["owned"] for each in self.told() if "owned" in each]
        return told[-1] if told else []

    @property
    def seen(self) -> list[tuple[int, int]]:
        return [(place[0], place[1]) for each in self.told() for place in each.get("seen", [])]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
