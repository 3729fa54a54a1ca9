"""A broker of a cluster that cannot start says why in one sentence and ends with exit code 1."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing.broker_process import BrokerProcess
from barnabas.testing.zookeeper import ZooKeeper

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as running:
        yield running


def command(data_dir: Path, connect: str, broker_id: int = 1, *more: str) -> list[str]:
    overrides = (
        f"zookeeper.connect={connect}",
        f"broker.id={broker_id}",
        "zookeeper.session.timeout.ms=4000",
        *more,
    )
    arguments = [part for override in overrides for part in ("--override", override)]
    return [
        sys.executable,
        "-m",
        "barnabas.cli.main",
        "start",
        "--port",
        "0",
        "--data-dir",
        str(data_dir),
        *arguments,
    ]


def refusal(*arguments: str | Path | int) -> str:
    """The last line that a broker prints which does not start."""
    done = subprocess.run(
        command(*arguments),  # type: ignore[arg-type]
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.fixture
def started(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[BrokerProcess]:
    """Broker 1 of the cluster in /refusals."""
    overrides = {"zookeeper.connect": zookeeper.connect + "/refusals", "zookeeper.session.timeout.ms": "4000"}
    broker = BrokerProcess(1, tmp_path / "one", port=0, overrides=overrides, output_file=tmp_path / "one.log")
    broker.start()
    broker.wait_until_ready()
    yield broker
    if broker.is_running:
        broker.kill()


def test_a_broker_id_that_is_taken_says_who_has_it(
    zookeeper: ZooKeeper, started: BrokerProcess, tmp_path: Path
) -> None:
    sentence = refusal(tmp_path / "two", zookeeper.connect + "/refusals", 1)
    assert "1" in sentence
    assert str(started.port) in sentence


def test_a_wrong_path_in_zookeeper_and_another_cluster_are_refused(
    zookeeper: ZooKeeper, started: BrokerProcess, tmp_path: Path
) -> None:
    started.stop()
    assert "/elsewhere" in refusal(started.data_dir, zookeeper.connect + "/elsewhere", 1)
    other = tmp_path / "other"
    other.mkdir()
    properties = (started.data_dir / "meta.properties").read_text().splitlines()
    changed = [
        "cluster.id=AAAAAAAAAAAAAAAAAAAAAA" if line.startswith("cluster.id=") else line for line in properties
    ]
    (other / "meta.properties").write_text("\n".join(changed) + "\n")
    sentence = refusal(other, zookeeper.connect + "/refusals", 1)
    assert "AAAAAAAAAAAAAAAAAAAAAA" in sentence


def test_a_directory_of_another_broker_is_refused(
    zookeeper: ZooKeeper, started: BrokerProcess, tmp_path: Path
) -> None:
    started.stop()
    sentence = refusal(started.data_dir, zookeeper.connect + "/refusals", 2)
    assert "belongs to node 1" in sentence


def test_a_zookeeper_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "127.0.0.1:1/path", 1, "zookeeper.connection.timeout.ms=1000")
    assert "127.0.0.1:1" in sentence


def test_a_broker_that_waits_for_zookeeper_can_be_stopped(tmp_path: Path) -> None:
    waiting = subprocess.Popen(
        command(tmp_path, "127.0.0.1:1", 1, "zookeeper.connection.timeout.ms=600000"),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        end = time.monotonic() + SECONDS_MAX
        while not (tmp_path / "barnabas-metadata").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        waiting.send_signal(signal.SIGTERM)
        _, printed = waiting.communicate(timeout=SECONDS_MAX)
    finally:
        waiting.kill()
    assert waiting.returncode == 0, printed
    assert "Traceback" not in printed


def test_adopting_directories_needs_a_broker_without_zookeeper(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "127.0.0.1:1", 1, "barnabas.adopt.log.dirs=true")
    assert "cluster adopt" in sentence
