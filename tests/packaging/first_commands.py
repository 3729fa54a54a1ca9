"""Runs the first commands of the README with the package that is installed: `python first_commands.py`.

It needs nothing but the package, so it runs in an environment without the tools for tests. The port is a free
one instead of 9092; everything else is as in the README."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()
PROGRAMS = Path(sys.executable).parent
START_SECONDS = 120


def block_with(command: str) -> str:
    """The shell block of the README that has this command."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return next(block for block in blocks if command in block)


def python_example(name: str) -> str:
    match = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", README, re.DOTALL)
    assert match, f"the README has no example {name}"
    return match[1]


def start_broker(directory: Path) -> tuple[subprocess.Popen[bytes], str]:
    lines = block_with("barnabas start").splitlines()
    line = next(line for line in lines if line.startswith("barnabas start"))
    command = line.replace("--port 9092", "--port 0 --ready-file ready").split()
    broker = subprocess.Popen([PROGRAMS / command[0], *command[1:]], cwd=directory)
    ready, deadline = directory / "ready", time.monotonic() + START_SECONDS
    while not ready.exists():
        assert broker.poll() is None, "the broker stopped"
        assert time.monotonic() < deadline, "the broker did not start"
        time.sleep(0.05)
    return broker, ready.read_text().strip()


def output_of(command: list[str], directory: Path) -> str:
    environment = {**os.environ, "PATH": f"{PROGRAMS}:/usr/bin:/bin"}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


def walk(directory: Path) -> None:
    broker, address = start_broker(directory)
    try:
        script = block_with("barnabas topics").replace("127.0.0.1:9092", address)
        printed = output_of(["sh", "-e", "-c", script], directory)
        assert "Created topic clicks." in printed, printed
        assert "hello" in printed, printed
        example = python_example("own").replace("127.0.0.1:9092", address)
        printed = output_of([sys.executable, "-c", example], directory)
        assert printed == "0\n0 b'42' b'3.50'\n", printed
    finally:
        broker.terminate()
        assert broker.wait(START_SECONDS) == 0, "the broker did not stop cleanly"
    printed = output_of([sys.executable, "-c", python_example("testing")], directory)
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", printed), printed


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        walk(Path(name))
    print("the first commands of the README work")
