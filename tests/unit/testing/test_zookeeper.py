"""The ZooKeeper of tests: real, quick, and able to be paused, killed and started again."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from barnabas.testing.ensemble import ZooKeeperEnsemble
from barnabas.testing.zookeeper import ZooKeeper, is_serving
from barnabas.testing.zookeeper_server import ServerSettings, ZooKeeperUnavailable, server_command


def client_of(zookeeper: ZooKeeper) -> KazooClient:
    client = KazooClient(hosts=zookeeper.connect, timeout=5.0)
    client.start(timeout=30)
    return client


def test_data_survives_a_kill_and_the_port_stays() -> None:
    with ZooKeeper() as zookeeper:
        port, directory = zookeeper.port, zookeeper.data_dir
        client = client_of(zookeeper)
        client.create("/kept", b"value")
        client.stop()
        client.close()
        zookeeper.kill()
        assert not is_serving("127.0.0.1", port)
        zookeeper.restart()
        assert zookeeper.port == port
        client = client_of(zookeeper)
        assert client.get("/kept")[0] == b"value"
        client.stop()
        client.close()
    assert not is_serving("127.0.0.1", port)
    assert not directory.exists()


def test_a_paused_server_answers_after_it_is_resumed() -> None:
    with ZooKeeper() as zookeeper:
        zookeeper.pause()
        with socket.create_connection(("127.0.0.1", zookeeper.port), timeout=0.3) as connection:
            connection.sendall(b"srvr")
            with pytest.raises(TimeoutError):
                connection.recv(16)
            zookeeper.resume()
            connection.settimeout(30)
            assert connection.recv(16).startswith(b"Zookeeper")


def test_a_server_that_cannot_start_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        zookeeper = ZooKeeper(port=taken.getsockname()[1])
        with pytest.raises(ZooKeeperUnavailable, match="did not start"), zookeeper:
            pytest.fail("the port is taken")
    assert not zookeeper.data_dir.exists()


def test_the_errors_for_missing_java_and_missing_jars_are_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ZooKeeperUnavailable, match=r"there is no zookeeper\*.jar in"):
        server_command(ServerSettings(2181, tmp_path), tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ZooKeeperUnavailable, match="needs Java 11 or later"):
        server_command(ServerSettings(2181, tmp_path))


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--server", "a:2888:3888"], "expected ID=HOST:PORT:PORT"),
        (["--server", "1=a:2888:3888"], "needs --id"),
        (["--server", "1=a:2888:3888", "--id", "2"], "--id 2 is not the number of any --server"),
        (["--jars", "nowhere"], "there is no zookeeper*.jar in nowhere"),
    ],
)
def test_wrong_options_of_the_command_are_sentences(tmp_path: Path, words: list[str], sentence: str) -> None:
    command = [sys.executable, "-m", "barnabas.cli.main", "zookeeper", "start", "--data-dir", str(tmp_path)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_an_ensemble_serves_while_one_of_its_servers_is_away() -> None:
    with ZooKeeperEnsemble(3) as ensemble:
        ensemble.servers[3].kill()
        client = KazooClient(hosts=ensemble.connect, timeout=5.0)
        client.start(timeout=30)
        client.create("/kept", b"value")
        ensemble.start()
        assert all(is_serving("127.0.0.1", server.port) for server in ensemble.servers.values())
        assert client.get("/kept")[0] == b"value"
        client.stop()
        client.close()
        ports = [server.port for server in ensemble.servers.values()]
    assert not any(is_serving("127.0.0.1", port) for port in ports)
