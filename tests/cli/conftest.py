"""A broker for the command line, and the command line itself: in this process, or as users start it."""

import io
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.clients.broker_process import PROGRAM, BrokerProcess, running_broker

import barnabas
from barnabas.cli.main import main
from barnabas.testing.broker import KEEP_OLD_RECORDS


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    quick = {"group.initial.rebalance.delay.ms": "0", **KEEP_OLD_RECORDS}
    with running_broker(tmp_path_factory.mktemp("cli"), quick) as running:
        yield running
        assert "Traceback" not in running.log_text(), running.log_tail()


@pytest.fixture(scope="session")
def bootstrap(broker: BrokerProcess) -> str:
    return broker.bootstrap


@pytest.fixture
def admin(bootstrap: str) -> Iterator[barnabas.Admin]:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        yield admin


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """run("topics", "--list", ..., stdin="") -> what it printed and its exit code; in this process."""

    def run(*arguments: str, stdin: str | bytes = "") -> Ran:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        # Tools that print bytes write to the underlying buffer.
        written, err = io.BytesIO(), io.StringIO()
        out = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as stopped:
                code = stopped.code if isinstance(stopped.code, int) else 1
        return Ran(code, written.getvalue().decode("utf-8", "surrogateescape"), err.getvalue())

    return run


@pytest.fixture
def run_process() -> Run:
    """The same with the installed program, as users start it."""

    def run(*arguments: str, stdin: str = "", program: Path = PROGRAM) -> Ran:
        done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, timeout=120)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name nobody else uses; the topic does not exist."""
    readable = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:100].strip("-")
    return f"{readable}-{uuid.uuid4().hex[:8]}"
