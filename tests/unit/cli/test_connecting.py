"""How tools find a broker, and the error when there is none."""

import socket
from pathlib import Path

import pytest
from tests.unit.cli.parsing import parsed

from barnabas.cli import connecting
from barnabas.cli.connecting import await_broker, client_settings
from barnabas.cli.failures import ToolError
from barnabas.client.keys import ADMIN_KEYS


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def test_tools_wait_for_a_broker_that_is_starting(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[socket.socket] = []

    def pause(seconds: float) -> None:
        opened.append(socket.create_server(("127.0.0.1", free_port)))

    monkeypatch.setattr(connecting.time, "sleep", pause)
    await_broker([("127.0.0.1", free_port)])
    assert len(opened) == 1
    opened[0].close()


def test_one_running_broker_is_enough(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await_broker([("127.0.0.1", free_port), listening.getsockname()])


def test_the_error_names_all_addresses_when_no_broker_answers(
    free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE_SECONDS", 0.01)
    with pytest.raises(ToolError) as caught:
        await_broker([("127.0.0.1", free_port), ("no.such.host.invalid", 9092)])
    assert f"127.0.0.1:{free_port}, no.such.host.invalid:9092" in str(caught.value)
    assert "barnabas start" in str(caught.value)


def test_settings_of_other_clients_in_a_file_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "all.properties"
    file.write_text("request.timeout.ms=5000\nacks=all\nbootstrap.servers=other:1\n")
    options = parsed("topics", "--list", "--command-config", str(file))
    settings = client_settings(options, {"client.id": "x"}, keys=ADMIN_KEYS)
    assert settings == {
        "request.timeout.ms": "5000",
        "bootstrap.servers": "localhost:1",
        "client.id": "x",
    }
