"""Walks the page "Quick Start" of Kafka's documentation, command by command, with our scripts."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.broker_process import PROGRAM

from barnabas.testing.ports import free_ports

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 60.0


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    """What a user has after unpacking: bin/ and config/. The port and the directory are those of this
    test."""
    home = tmp_path / "kafka"
    shutil.copytree(ROOT / "bin", home / "bin")
    (home / "config").mkdir()
    (port,) = free_ports(1)
    text = (ROOT / "config" / "server.properties").read_text()
    changed = text.replace("localhost:9092", f"127.0.0.1:{port}").replace(
        "/tmp/barnabas-logs", str(tmp_path / "data")
    )
    assert changed.count(str(port)) == 1 and str(tmp_path / "data") in changed
    (home / "config" / "server.properties").write_text(changed)
    (home / "address").write_text(f"127.0.0.1:{port}")
    return home


def sh(kafka: Path, command: str, stdin: str = "") -> str:
    command = command.replace("localhost:9092", (kafka / "address").read_text())
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=kafka,
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def server(kafka: Path) -> Iterator[subprocess.Popen[bytes]]:
    cluster_id = sh(kafka, "bin/kafka-storage.sh random-uuid").strip()
    assert len(cluster_id) == 22
    formatted = sh(
        kafka, f"bin/kafka-storage.sh format --standalone -t {cluster_id} -c config/server.properties"
    )
    assert f"with cluster id {cluster_id}" in formatted
    assert cluster_id in sh(kafka, "bin/kafka-storage.sh info -c config/server.properties")
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    running = subprocess.Popen(
        ["bin/kafka-server-start.sh", "config/server.properties"],
        cwd=kafka,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, b"")
        assert any(b" ready on " in line for line in lines)
        assert cluster_id in sh(kafka, "bin/kafka-cluster.sh cluster-id --bootstrap-server localhost:9092")
        yield running
    finally:
        running.send_signal(signal.SIGKILL)
        running.communicate()


def test_the_quick_start(kafka: Path, server: subprocess.Popen[bytes]) -> None:
    at = "--bootstrap-server localhost:9092"
    created = sh(kafka, f"bin/kafka-topics.sh --create --topic quickstart-events {at}")
    assert created == "Created topic quickstart-events.\n"
    described = sh(kafka, f"bin/kafka-topics.sh --describe --topic quickstart-events {at}")
    assert "Topic: quickstart-events" in described and "PartitionCount: 1" in described
    sh(
        kafka,
        f"bin/kafka-console-producer.sh --topic quickstart-events {at}",
        stdin="This is my first event\nThis is my second event\n",
    )
    # The page ends the consumer with Ctrl-C.
    read = sh(
        kafka,
        f"bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning {at} --max-messages 2",
    )
    assert read == "This is my first event\nThis is my second event\n"
    stopped = sh(kafka, f"bin/kafka-server-stop.sh --data-dir {kafka.parent / 'data'}")
    assert stopped.startswith("Stopped broker 1 (process ")
    give_up = time.monotonic() + SECONDS_MAX
    while server.poll() is None and time.monotonic() < give_up:
        time.sleep(0.02)
    assert server.returncode == 0


def test_stopping_what_does_not_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "server-stop", "--data-dir", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, "No kafka server to stop\n")


def test_formatting_twice(kafka: Path) -> None:
    command = "bin/kafka-storage.sh format --standalone -t 5L6g3nShT-eMCtK--X86sw -c config/server.properties"
    sh(kafka, command)
    with pytest.raises(AssertionError, match=r"is already formatted. Use --ignore-formatted"):
        sh(kafka, command)
    assert sh(kafka, f"{command} --ignore-formatted") == "All of the log directories are already formatted.\n"
