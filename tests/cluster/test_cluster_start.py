"""`barnabas cluster start` as users start it: the ready file, the output, deaths of brokers, the end."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.clients.broker_process import PROGRAM

import barnabas

WAIT_SECONDS_MAX = 60.0


class Started:
    def __init__(self, directory: Path, *arguments: str) -> None:
        self.ready_file = directory / "ready.json"
        self.output = directory / "output"
        self.data_dir = directory / "data"
        command = [PROGRAM, "cluster", "start", "--data-dir", self.data_dir, "--ready-file", self.ready_file]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "--port", "0", *arguments], stdout=output, stderr=output
            )

    def wait_for(self, text: str) -> str:
        """The output, as soon as the text is in it."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while text not in (output := self.output.read_text()):
            assert time.monotonic() < deadline, f"{text!r} is not in the output:\n{output}"
            time.sleep(0.02)
        return output

    def ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not self.ready_file.exists():
            assert self.process.poll() is None and time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.02)
        described: dict[str, Any] = json.loads(self.ready_file.read_text())
        return described


@contextmanager
def started(directory: Path, *arguments: str) -> Iterator[Started]:
    cluster = Started(directory, *arguments)
    try:
        yield cluster
    finally:
        if cluster.process.poll() is None:
            cluster.process.send_signal(signal.SIGINT)
            cluster.process.wait(WAIT_SECONDS_MAX)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def cluster_id(bootstrap: str) -> str:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        return admin.describe_cluster().cluster_id


@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_runs_until_it_is_interrupted(tmp_path: Path, stop_signal: int) -> None:
    with started(tmp_path, "--brokers", "1", "--override", "num.partitions=7") as cluster:
        ready = cluster.ready()
        (broker,) = ready["brokers"]
        assert ready["bootstrap"] == f"127.0.0.1:{broker['port']}"
        assert (broker["id"], broker["data_dir"]) == (1, str(cluster.data_dir / "broker-1"))
        assert cluster_id(ready["bootstrap"])
        pids = [ready["zookeeper"]["pid"], broker["pid"]]
        assert all(map(is_alive, pids))
        output = cluster.wait_for("run on this machine")
        assert "[broker 1 ] [" in output and f"1 brokers are ready: {ready['bootstrap']}" in output
        cluster.process.send_signal(stop_signal)
        assert cluster.process.wait(WAIT_SECONDS_MAX) == 0
        assert not any(map(is_alive, pids))
        assert (cluster.data_dir / "broker-1" / ".kafka_cleanshutdown").exists()


def test_a_broker_that_dies_is_reported_and_its_command_starts_it_again(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "1") as cluster:
        ready = cluster.ready()
        (broker,) = ready["brokers"]
        before = cluster_id(ready["bootstrap"])
        os.kill(broker["pid"], signal.SIGKILL)
        cluster.wait_for("broker 1 has died (killed by SIGKILL); start it with: ")
        again = subprocess.Popen(broker["command"], stderr=subprocess.DEVNULL)
        try:
            assert cluster_id(ready["bootstrap"]) == before
        finally:
            again.terminate()
            again.wait(WAIT_SECONDS_MAX)


def test_with_restart_a_broker_that_dies_is_started_again(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "1", "--restart") as cluster:
        ready = cluster.ready()
        before = cluster_id(ready["bootstrap"])
        os.kill(ready["brokers"][0]["pid"], signal.SIGKILL)
        cluster.wait_for("it is started again")
        assert cluster_id(ready["bootstrap"]) == before


def test_a_directory_serves_one_cluster_at_a_time(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "1") as cluster:
        cluster.ready()
        second = subprocess.run(
            [PROGRAM, "cluster", "start", "--brokers", "1", "--data-dir", cluster.data_dir],
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS_MAX,
        )
    assert second.returncode == 1
    assert (
        second.stderr == f"Error: A cluster with the data directory {cluster.data_dir} is running already.\n"
    )


def test_a_broker_that_cannot_start_ends_the_cluster_with_a_sentence(tmp_path: Path) -> None:
    with started(tmp_path, "--brokers", "1", "--override", "num.partitions=none") as cluster:
        assert cluster.process.wait(WAIT_SECONDS_MAX) == 1
    output = cluster.output.read_text()
    assert "[broker 1 ] Error: " in output and "num.partitions" in output
    assert output.endswith("Error: The cluster did not start: broker 1 did not start (exit 1).\n")
