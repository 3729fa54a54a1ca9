"""The doctor finds what is wrong on this machine, says what to do, and fails only for what is needed."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

from barnabas.cli.doctor import machine

FREE_PORT = ("--port", "0")


def checks(run: Run, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    ran = run("doctor", "--json", *options)
    document = json.loads(ran.out)
    found = {each["check"]: each for each in document["checks"]}
    assert document["failed"] == sum(each["status"] == "failed" for each in found.values())
    assert all((each["remedy"] is None) == (each["status"] == "ok") for each in found.values())
    return ran.code, found


def test_a_machine_that_can_run_a_broker(run: Run, tmp_path: Path) -> None:
    code, found = checks(run, *FREE_PORT, "--data-dir", str(tmp_path / "not" / "there" / "yet"))
    assert code == 0
    assert found["kernels"]["found"] == "compiled"
    assert found[f"disk of {tmp_path}/not/there/yet"]["found"].endswith("GB free")
    assert set(found) >= {"python", "gcc", "java", "descriptors", "clock", "port 0", "spark"}


def test_the_table_has_a_remedy_for_each_problem(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        ran = run("doctor", "--port", str(number), "--data-dir", str(tmp_path))
    assert ran.code == 1
    (line,) = [index for index, text in enumerate(ran.lines) if f"port {number}" in text]
    assert ran.lines[line].startswith("failed   port")
    assert "another process uses this port" in ran.lines[line]
    assert ran.lines[line + 1].strip().startswith("-> Stop the other process, or choose another port")
    assert " 1 failed, " in ran.lines[-1]


def test_a_directory_that_cannot_be_written(run: Run) -> None:
    code, found = checks(run, *FREE_PORT, "--data-dir", "/proc/barnabas")
    assert code == 1 and "cannot be written" in found["disk of /proc/barnabas"]["found"]


def test_what_only_other_uses_need_is_a_warning(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    options = (*FREE_PORT, "--data-dir", str(tmp_path))
    code, found = checks(run, *options)
    assert (code, found["java"]["status"], found["gcc"]["status"]) == (0, "warning", "warning")
    code, found = checks(run, *options, "--for", "broker", "spark", "build")
    assert (code, found["java"]["status"], found["gcc"]["status"]) == (1, "failed", "failed")
    assert found["spark workers"]["status"] == "ok"
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    code, found = checks(run, *options, "--for", "cluster")
    assert (code, found["java"]["found"]) == (1, f"{old} is version 8")


def test_zookeeper_is_needed_for_a_cluster(run: Run, tmp_path: Path) -> None:
    options = (*FREE_PORT, "--data-dir", str(tmp_path), "--for", "cluster")
    code, found = checks(run, *options)
    assert (code, found["zookeeper"]["found"]) == (1, "not named")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        number = closed.getsockname()[1]
    code, found = checks(run, *options, "--zookeeper", f"127.0.0.1:{number}/path")
    assert code == 1 and "no answer" in found[f"zookeeper 127.0.0.1:{number}"]["found"]


def test_uses_are_added_up(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        master = f"127.0.0.1:{closed.getsockname()[1]}"
    options = (*FREE_PORT, "--data-dir", str(tmp_path), "--spark-master", f"spark://{master}")
    code, found = checks(run, *options, "--for", "cluster", "--for", "spark")
    assert (code, found["zookeeper"]["found"]) == (1, "not named")
    assert found["spark workers"]["status"] == "ok"
    assert found[f"spark master {master}"]["found"] == "no answer: Connection refused"


def test_a_running_broker(run: Run, bootstrap: str, tmp_path: Path) -> None:
    options = ("--running", "--data-dir", str(tmp_path))
    code, found = checks(run, *options, "--bootstrap-server", bootstrap)
    assert code == 0 and found[f"broker {bootstrap}"]["found"].endswith("with broker 1")


def test_a_clock_that_nobody_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_kernel_clock_state", lambda: machine.CLOCK_UNSYNCHRONIZED)
    finding = machine.clock()
    assert finding.status == "warning" and "not synchronized" in finding.found


def test_too_few_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 1024))
    assert machine.descriptors().status == "failed"
