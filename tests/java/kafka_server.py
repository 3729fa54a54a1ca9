"""A single-node Apache Kafka (KRaft, broker and controller in one process) from Maven's jars, for comparison.

It listens on loopback only, on free ports, and writes only below the directory it is given."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.java.jvm import java_command, run_java

from barnabas.testing.ports import free_ports

CLUSTER_ID = "QmFybmFiYXNKdWRnZXMxMg"
# Heap and collector as in Kafka's own start script.
SERVER_OPTIONS = (
    "-Xmx1g",
    "-Xms1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
START_SECONDS_MAX = 90.0


class KafkaServer:
    """Formats its directory at the first start; can be stopped and started again with the same data."""

    start_seconds_max = START_SECONDS_MAX

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.log_dir = directory / "kafka-logs"
        self.properties = directory / "server.properties"
        self.overrides = dict(overrides or {})
        port, self.controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Return when the broker accepts connections (the advertised listener opens last)."""
        self.format_once()
        self.launch()
        self.wait_for_listener()

    def launch(self) -> None:
        """Start the process without waiting for it."""
        with (self.directory / "server.err").open("ab") as errors:
            command = java_command("kafka.Kafka", [str(self.properties)], SERVER_OPTIONS)
            environment = {**os.environ, "LOG_DIR": str(self.directory)}
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors, env=environment)

    def format_once(self) -> None:
        """Write the configuration and format the log directory, unless that was done before."""
        if self.properties.exists():
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        controller = f"127.0.0.1:{self.controller_port}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.overrides,
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        arguments = ["format", "--cluster-id", CLUSTER_ID, "--config", str(self.properties)]
        done = run_java("kafka.tools.StorageTool", *arguments)
        if done.returncode != 0:
            raise AssertionError(f"Kafka's storage tool failed:\n{done.stdout}{done.stderr}")

    def wait_for_listener(self) -> None:
        assert self.process is not None
        host, port = self.bootstrap.split(":")
        deadline = time.monotonic() + self.start_seconds_max
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(
                    f"Kafka ended at start:\n{(self.directory / 'server.err').read_text()[-4000:]}"
                )
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
                return
            time.sleep(0.02)
        self.stop()
        raise AssertionError(f"Kafka did not listen within {self.start_seconds_max:.0f} s")

    def stop(self, with_signal: int = signal.SIGTERM) -> None:
        """End the process and wait for its end; SIGTERM is a clean shutdown."""
        if self.process is None:
            return
        self.process.send_signal(with_signal)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def restart(self, with_signal: int = signal.SIGTERM) -> None:
        self.stop(with_signal)
        self.start()

    def log_text(self) -> str:
        return (self.directory / "server.err").read_text(errors="replace")

    def log_tail(self) -> str:
        return self.log_text()[-4000:]


@contextlib.contextmanager
def running_kafka(directory: Path, overrides: Mapping[str, str] | None = None) -> Iterator[KafkaServer]:
    server = KafkaServer(directory, overrides)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def main() -> None:
    """Run Kafka in the foreground until interrupted: `python -m tests.java.kafka_server DIRECTORY`."""
    with running_kafka(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:])) as server:
        # Not before Kafka is started: its process must not inherit the mask.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        print(server.bootstrap, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
