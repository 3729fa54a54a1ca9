"""What an operator sees when a broker starts, as a real process: a line that says what starts, or a
sentence that says why it does not."""

import errno
import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.cli.conftest import Run
from tests.clients.broker_process import PROGRAM, BrokerProcess, running_broker
from tests.jepsen.shim import Operation, Shim

import barnabas
from barnabas.testing.ports import free_ports


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def refused(run_process: Run, *arguments: str) -> str:
    """The one sentence of a start that fails. INFO lines of the log may come before it."""
    ran = run_process("start", *arguments)
    lines = [line for line in ran.err.splitlines() if " INFO " not in line]
    assert (ran.code, len(lines)) == (1, 1), ran.err
    assert lines[0].startswith("Error: ")
    return lines[0]


def test_a_port_that_is_taken(run_process: Run, tmp_path: Path, taken_port: int) -> None:
    sentence = refused(run_process, "--port", str(taken_port), "--data-dir", str(tmp_path))
    assert f"cannot listen on 127.0.0.1:{taken_port}: another process uses this port" in sentence


def test_a_port_for_metrics_that_is_taken(run_process: Run, tmp_path: Path, taken_port: int) -> None:
    sentence = refused(
        run_process, "--port", "0", "--metrics-port", str(taken_port), "--data-dir", str(tmp_path)
    )
    assert f"metrics: cannot listen on 127.0.0.1:{taken_port}: another process uses" in sentence


def test_an_address_of_another_machine(run_process: Run, tmp_path: Path) -> None:
    # RFC 5737: an address for documents, which no machine has.
    listeners = "listeners=PLAINTEXT://192.0.2.1:0"
    sentence = refused(run_process, "--override", listeners, "--data-dir", str(tmp_path))
    assert "192.0.2.1:0: this machine does not have that address" in sentence


def test_a_directory_that_cannot_be_written(run_process: Run) -> None:
    # Nobody can create a directory there, not even root.
    sentence = refused(run_process, "--port", "0", "--data-dir", "/sys/barnabas")
    assert "Cannot write to /sys/barnabas" in sentence and "--data-dir" in sentence


def test_a_directory_that_cannot_be_created(run_process: Run) -> None:
    """The sentence names the directory once, and what is missing only if it is another one."""
    sentence = refused(run_process, "--port", "0", "--data-dir", "/proc/nothing")
    assert sentence.startswith("Error: Cannot use /proc/nothing: No such file or directory. Create the")
    sentence = refused(run_process, "--port", "0", "--data-dir", "/proc/nothing/below")
    assert sentence.startswith("Error: Cannot use /proc/nothing/below: /proc/nothing: No such file or")


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_directory_that_is_a_file(run_process: Run, tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    sentence = refused(run_process, "--port", "0", "--data-dir", f"{tmp_path}/file{below}")
    assert f"The data directory {tmp_path}/file{below} is a file, or is below one" in sentence


@pytest.mark.parametrize("room_bytes", [0, 300])
def test_a_full_disk(
    run_process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    """Wherever the start is when the space ends: a broker needs more than these bytes. One that has begun to
    write also logs what it could not write."""
    shim = Shim(tmp_path / "shim")
    data_dir = tmp_path / "data"
    shim.fail(Operation.WRITE | Operation.CREATE, errno.ENOSPC, data_dir, room_bytes=room_bytes)
    for name, value in shim.environment.items():
        monkeypatch.setenv(name, value)
    ran = run_process("start", "--port", "0", "--data-dir", str(data_dir))
    lines = ran.err.splitlines()
    assert ran.code == 1
    assert lines[-1].startswith(f"Error: The disk of {data_dir} is full: make space there")
    assert all(" INFO " in line for line in lines[:-1]) or room_bytes > 0
    assert "Traceback" not in ran.err


def test_a_data_directory_with_a_damaged_file(run_process: Run, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("damaged\n")
    sentence = refused(run_process, "--port", "0", "--data-dir", str(tmp_path))
    assert f"{tmp_path}/meta.properties cannot be read: it has no 'node.id'." in sentence


def test_wrong_config_files(run_process: Run, tmp_path: Path) -> None:
    missing, binary, other = tmp_path / "missing", tmp_path / "binary", tmp_path / "compose.yaml"
    binary.write_bytes(b"\x7fELF\xd0\xff")
    other.write_text("services:\n  broker:\n    image: barnabas\n")
    assert f"Cannot read the config file {missing}: No such file" in refused(run_process, str(missing))
    assert f"Cannot read the config file {tmp_path}: Is a directory" in refused(run_process, str(tmp_path))
    assert f"The config file {binary} is not a text file" in refused(run_process, str(binary))
    assert "compose.yaml has no setting of a broker (it begins with 'services')" in refused(
        run_process, str(other)
    )


def ask(port: str, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def port_of_metrics(broker: BrokerProcess) -> str:
    (port,) = re.findall(r"metrics on http://127.0.0.1:(\d+)/metrics, probes on", broker.log_text())
    return str(port)


def test_the_log_of_a_start_and_the_probes(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"barnabas.metrics.port": "0"}) as broker:
        text = broker.log_text()
        assert f"Barnabas {barnabas.__version__} (Python " in text
        assert f"starts broker 1: data in {broker.data_dir}, listeners PLAINTEXT://127.0.0.1:0" in text
        assert f"ready on PLAINTEXT://{broker.bootstrap}" in text
        port = port_of_metrics(broker)
        assert ask(port, "/health") == (
            200,
            {"status": "ok", "checks": {"event loop": "ok", "log directories": "ok"}},
        )
        status, document = ask(port, "/ready")
        assert (status, document["status"]) == (200, "ok")
        assert document["checks"] == {"started": "ok", "unfenced": "ok", "log directories": "ok"}
    assert broker.log_text().count("stopped") == 1


def test_probes_while_a_start_waits_for_zookeeper(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    # This one accepts connections and never answers.
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        overrides = [
            f"zookeeper.connect={address}",
            f"log.dirs={tmp_path}",
            "listeners=PLAINTEXT://127.0.0.1:0",
        ]
        command = [str(PROGRAM), "start", "--metrics-port", str(port)]
        command += [word for each in overrides for word in ("--override", each)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as starting:
            try:
                while not can_connect(port):
                    assert starting.poll() is None
                assert ask(str(port), "/health")[0] == 200
                status, document = ask(str(port), "/ready")
                assert status == 503
                assert document["checks"] == {
                    "started": "the broker is starting or stopping",
                    "unfenced": "the controller has not unfenced this broker yet",
                    "log directories": "ok",
                }
            finally:
                starting.kill()


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        time.sleep(0.02)
        return False
    return True


def test_the_version(run: Run) -> None:
    ran = run("version")
    assert ran.lines[0] == f"barnabas {barnabas.__version__}" and ran.code == 0
    facts = json.loads(run("version", "--json").out)
    assert facts["version"] == barnabas.__version__
    assert facts["kernels"] == "compiled" and facts["packages"]["crc32c"]
