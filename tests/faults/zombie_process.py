"""A transactional producer as a process of its own, which may be stopped, continued and killed:

    python -m tests.faults.zombie_process LIBRARY BOOTSTRAP TRANSACTIONAL_ID TOPIC TIMEOUT_MS

It begins one transaction and sends to partitions 0 and 1 in turn until it is refused, then tries to commit.
One line of JSON for each record that was acknowledged, and for each refusal."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.clients.transactional import TRANSACTIONAL, Fenced, Refused, Transactional

from barnabas.client.errors import KafkaError, ProducerFencedError
from barnabas.client.producer import Producer

ROOT = Path(__file__).parent.parent.parent
PAUSE_SECONDS = 0.01


class OwnTransactional:
    """Our producer, with the methods that a zombie needs."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = Producer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        self._do(self._producer.init_transactions)

    def _do(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except ProducerFencedError as error:
            raise Fenced(str(error)) from error
        except KafkaError as error:
            raise Refused(str(error)) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._do(lambda: self._producer.send(topic, value, partition=partition).result(30))

    def commit(self) -> None:
        self._do(self._producer.commit_transaction)


LIBRARIES: dict[str, Callable[..., Any]] = {**TRANSACTIONAL, "barnabas": OwnTransactional}


def main(library: str, bootstrap: str, transactional_id: str, topic: str, timeout_ms: str) -> None:
    producer: Transactional = LIBRARIES[library](bootstrap, transactional_id, int(timeout_ms))
    producer.begin()
    for number in itertools.count():
        value = b"zombie %d" % number
        if not _succeeds("send", lambda value=value, number=number: producer.send(topic, value, number % 2)):
            break
        time.sleep(PAUSE_SECONDS)
    _succeeds("commit", producer.commit)
    # Without closing the library: what a zombie sends at its end is not tested here.
    os._exit(0)


def _succeeds(what: str, action: Callable[[], None]) -> bool:
    try:
        action()
    except (Fenced, Refused) as error:
        print(json.dumps({what: type(error).__name__, "text": str(error)}), flush=True)
        return False
    print(json.dumps({what: "done"}), flush=True)
    return True


class ZombieProcess:
    """A context manager: the process is killed at the end, whatever its state."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._output = directory / "zombie.jsonl"
        self._errors = directory / "zombie.err"
        command = [sys.executable, "-W", "ignore", "-m", "tests.faults.zombie_process", *arguments]
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors)

    def __enter__(self) -> "ZombieProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def lines(self) -> list[dict[str, str]]:
        lines = self._output.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def sent(self) -> int:
        """How many records were acknowledged."""
        assert self.process.poll() is None, self._errors.read_text()[-3000:]
        return sum(each.get("send") == "done" for each in self.lines())

    def refusals(self) -> dict[str, str]:
        """The errors it got after it continued, when it has ended: {"send": "Fenced", "commit": ...}."""
        self.process.wait(60)
        return {
            what: each[what]
            for each in self.lines()
            for what in ("send", "commit")
            if each.get(what) != "done" and what in each
        }

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
