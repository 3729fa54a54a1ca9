"""Which processes `server-stop` stops. The processes are real, but their entries in /proc are made by the
tests, since other brokers may run on this machine."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli import server_stop
from barnabas.cli.failures import ToolError
from barnabas.cli.main import parser_of
from barnabas.ids import random_uuid
from barnabas.log import names
from barnabas.log.checkpoints import MetaProperties, write_meta_properties
from barnabas.log.disk import RealDisk

START = ["/usr/bin/python3", "/opt/bin/barnabas", "start"]
HERE = "pid:[1]"
SECONDS_MAX = 60


class Machine:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.proc = directory / "proc"
        self._link(self.proc / "self/ns/pid", HERE)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, node_id: int, command: list[str] = START, namespace: str = HERE) -> Path:
        """A process that waits, and which looks like this; returns its data directory."""
        program = "import sys, time; print(flush=True); time.sleep(600)"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        self.processes.append(process)
        data = self._directory / f"data-{len(self.processes)}"
        data.mkdir()
        write_meta_properties(RealDisk(), data, MetaProperties("cluster", node_id, random_uuid()))
        entry = self.proc / str(process.pid)
        self._link(entry / "fd/7", str(data / names.LOCK))
        self._link(entry / "ns/pid", namespace)
        (entry / "cmdline").write_text("\0".join(command))
        return data

    @staticmethod
    def _link(path: Path, target: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def stopped(self) -> list[bool]:
        return [process.poll() is not None for process in self.processes]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    monkeypatch.setattr(server_stop, "PROC", machine.proc)
    yield machine
    for process in machine.processes:
        process.kill()
        process.communicate(timeout=SECONDS_MAX)


def stop(*options: str) -> int:
    return server_stop.run(parser_of("server-stop").parse_args(options))


def test_all_brokers_of_this_machine_and_nothing_else(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.start(1)
    machine.start(2, ["/usr/bin/python3", "-m", "barnabas.cli.main", "start"])
    machine.start(3, ["java", "kafka.Kafka", "server.properties"])
    machine.start(4, ["/usr/bin/vi", names.LOCK])
    machine.start(5, namespace="pid:[2]")
    assert stop() == 0
    assert machine.stopped() == [True, True, False, False, False]
    first, second = capsys.readouterr().out.splitlines()
    assert {first[:16], second[:16]} == {"Stopped broker 1", "Stopped broker 2"}


@pytest.mark.parametrize("option", ["--node-id=2", "--data-dir"])
def test_one_of_several(machine: Machine, option: str) -> None:
    machine.start(1)
    data = machine.start(2)
    assert stop(*([option, str(data)] if option == "--data-dir" else [option])) == 0
    assert machine.stopped() == [False, True]
    assert stop("--node-id", "3") == 1
    assert machine.stopped() == [False, True]


def test_roles(machine: Machine) -> None:
    """A Kafka user who stops the controllers does not mean the brokers."""
    machine.start(1)
    with pytest.raises(ToolError, match="No process is only a controller"):
        stop("--process-role=controller")
    assert machine.stopped() == [False]
    assert stop("--process-role=broker") == 0
    assert machine.stopped() == [True]


def test_another_signal(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start(1)
    monkeypatch.setenv("SIGNAL", "NONSENSE")
    with pytest.raises(ToolError, match="SIGNAL=NONSENSE is not the name of a signal"):
        stop()
    monkeypatch.setenv("SIGNAL", "KILL")
    assert stop() == 0
    assert machine.processes[0].wait(SECONDS_MAX) == -9


def test_a_process_that_does_not_end(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start(1)
    # The signal that changes nothing for this process.
    monkeypatch.setenv("SIGNAL", "CONT")
    assert stop("--timeout", "0") == 1
    assert machine.stopped() == [False]
