"""A member of a group in its own process, which may be killed: it commits each record that it has reported.

    python -m tests.clients.member_process BOOTSTRAP GROUP TOPIC ASSIGNOR PROTOCOL

One line of JSON for each change of what it owns, and for each poll that gave records."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.clients.client import BrokerError
from tests.clients.consumers import ConfluentConsumer, ConsumerSetup, Place

ROOT = Path(__file__).parent.parent.parent


def main(bootstrap: str, group: str, topic: str, assignor: str, protocol: str) -> None:
    setup = ConsumerSetup(
        group, (topic,), assignor=assignor, protocol=protocol, session_timeout_ms=1500, poll_interval_ms=5000
    )
    consumer = ConfluentConsumer(bootstrap, setup)
    owned: frozenset[Place] = frozenset()
    while True:
        seen = consumer.poll(0.05)
        if seen:
            print(json.dumps({"seen": [[each.partition, each.offset] for each in seen]}), flush=True)
            try:
                consumer.commit()
            except BrokerError as refused:
                # The partitions have moved: their new owner reads these records again.
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

    def reports(self) -> list[dict[str, Any]]:
        """Its reports so far; the last line may be incomplete after a kill."""
        lines = self._output.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def owned(self) -> list[int]:
        """The partitions that it has reported, or none after it has ended."""
        if self.process.poll() is not None:
            return []
        owned: list[list[int]] = [each["owned"] for each in self.reports() if "owned" in each]
        return owned[-1] if owned else []

    @property
    def seen(self) -> list[tuple[int, int]]:
        return [(place[0], place[1]) for each in self.reports() for place in each.get("seen", [])]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
