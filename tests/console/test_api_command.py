"""`barnabas console`, and `--console-port` of the commands that run brokers."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.console.conftest import Peer
from tests.console.served import Api, eventually

from barnabas.cli.main import main


@contextmanager
def running(output: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.main", *arguments], stdout=file, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(60)


def url_in(output: Path) -> str:
    found = eventually(lambda: re.search(r"The console is at (http://\S+)", output.read_text()))
    return str(found[1])


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_the_command_serves_until_it_is_interrupted(broker: Peer, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with running(output, "console", "--bootstrap-server", broker.bootstrap, "--port", "0") as process:
        url = url_in(output)
        assert url.startswith("http://127.0.0.1:")
        eventually(lambda: answers(url))
        with Api(url) as api:
            assert api.begin()["bootstrap"] == broker.bootstrap
            # A page that listens does not hold the end up, and the end is quiet.
            events = api.events("/api/events")
            next(events)
            process.send_signal(signal.SIGINT)
            assert all(name in ("sample", "cluster") for name, _ in events)
            process.wait(60)
    assert process.returncode == 0
    assert output.read_text() == f"The console is at {url} (Ctrl-C stops it).\n"


def test_a_broker_with_a_console_that_ends_with_it(tmp_path: Path) -> None:
    output = tmp_path / "output"
    start = ("start", "--port", "0", "--data-dir", str(tmp_path / "data"), "--console-port", "0")
    with running(output, *start) as process:
        url = url_in(output)
        eventually(lambda: answers(url))
        # Also when the broker cannot say goodbye.
        os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: not answers(url))


def test_a_secured_broker_with_a_console_asks_for_a_login(tmp_path: Path) -> None:
    output = tmp_path / "output"
    start = ("start", "--secure", "--port", "0", "--data-dir", str(tmp_path / "data"), "--console-port", "0")
    with running(output, *start):
        url = url_in(output)
        eventually(lambda: answers(url))
        with Api(url) as api:
            assert api.begin()["login_required"] is True
            text = (tmp_path / "data" / "secure" / "admin.properties").read_text()
            password = text.partition('password="')[2].partition('"')[0]
            assert api.post("/api/login", {"user": "admin", "password": password})["user"] == "admin"
    eventually(lambda: not answers(url))


def test_a_console_for_other_machines_warns(broker: Peer, tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = ("console", "--bootstrap-server", broker.bootstrap, "--port", "0", "--host", "0.0.0.0")
    with running(output, *command):
        url_in(output)
    assert output.read_text().startswith("Warning: other machines can reach the console")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--mask", "orders"], "Error: --mask 'orders' must be TOPIC:PATH, such as "),
        (["--mask", "orders:$["], "Error: '$[' is not a path such as "),
        (["--command-config", "/nowhere"], "Error: /nowhere: No such file or directory."),
        (["--port", "99999999"], "Error: Port 99999999 of 127.0.0.1 cannot be used ("),
    ],
)
def test_wrong_options_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", "--bootstrap-server", "localhost:1", *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence)


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("barnabas.cli.console.find_spec", lambda name: None)
    assert main(["console", "--bootstrap-server", "localhost:1"]) == 1
    assert capsys.readouterr().err == (
        "Error: The console needs two more packages: pip install 'barnabas[console]'.\n"
    )
