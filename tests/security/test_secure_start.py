"""`--secure`: one option makes certificates, an admin and ACLs, for one broker and for a cluster."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

import barnabas
from barnabas.cli.secure import SecureFiles
from barnabas.client.admin import NewTopic
from barnabas.client.errors import KafkaError

READY_SECONDS_MAX = 60.0


@contextlib.contextmanager
def started(data_dir: Path, *command: str) -> Iterator[str]:
    """Run `barnabas <command> --secure` on free ports; yields what is in its ready file."""
    ready = data_dir / "ready"
    data_dir.mkdir(exist_ok=True)
    ready.unlink(missing_ok=True)
    arguments = [*command, "--secure", "--port", "0", "--data-dir", str(data_dir), "--ready-file", str(ready)]
    with (data_dir / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.main", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + READY_SECONDS_MAX
            while not ready.exists():
                assert process.poll() is None and time.monotonic() < deadline, output_of(data_dir)
                time.sleep(0.05)
            yield ready.read_text().strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(READY_SECONDS_MAX)


def output_of(data_dir: Path) -> str:
    return (data_dir / "output").read_text()


def check_closed_to_others(bootstrap: str, files: SecureFiles) -> None:
    """Without TLS, without a password, and with a wrong one."""
    settings = files.client_settings()
    with pytest.raises(KafkaError), barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.describe_cluster(timeout=3)
    wrong = settings["sasl.jaas.config"].replace('password="', 'password="not ')
    with (
        pytest.raises(KafkaError, match="invalid credentials"),
        barnabas.Admin({**settings, "bootstrap.servers": bootstrap, "sasl.jaas.config": wrong}) as admin,
    ):
        admin.describe_cluster(timeout=10)


def check_usable(bootstrap: str, files: SecureFiles) -> None:
    settings = {**files.client_settings(), "bootstrap.servers": bootstrap}
    with barnabas.Admin(settings) as admin:
        admin.create_topics([NewTopic("orders", 3)])
    with barnabas.Producer(settings) as producer:
        assert producer.send("orders", b"one").result(20).offset == 0
    client = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": settings["sasl.mechanism"],
            "sasl.username": "admin",
            "sasl.password": settings["sasl.jaas.config"].partition('password="')[2].partition('"')[0],
            "ssl.ca.location": settings["ssl.truststore.location"],
        }
    )
    try:
        assert "orders" in client.list_topics(timeout=20).topics
    except KafkaException as error:
        pytest.fail(str(error))


def test_one_broker(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    files = SecureFiles(data_dir)
    with started(data_dir, "start") as bootstrap:
        check_usable(bootstrap, files)
        check_closed_to_others(bootstrap, files)
        assert f"--command-config {files.admin}" in output_of(data_dir)
        password = files.client_settings()["sasl.jaas.config"].partition('password="')[2].partition('"')[0]
        assert password and password not in output_of(data_dir)
    # The credentials of users are encrypted where they are stored, also in the file of a single broker.
    (metadata,) = data_dir.glob("barnabas-metadata/*.log")
    assert metadata.read_bytes().count(b'"credential":"barnabas-encrypted:') >= 2
    assert b'"credential":"4096,' not in metadata.read_bytes()
    before = {path.name: path.read_bytes() for path in files.directory.iterdir()}
    with (
        started(data_dir, "start") as bootstrap,
        barnabas.Admin({**files.client_settings(), "bootstrap.servers": bootstrap}) as admin,
    ):
        assert "orders" in admin.list_topics()
    assert {path.name: path.read_bytes() for path in files.directory.iterdir()} == before


def test_a_cluster(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    files = SecureFiles(data_dir)
    with started(data_dir, "cluster", "start", "--brokers", "3") as ready:
        bootstrap = json.loads(ready)["bootstrap"]
        check_usable(bootstrap, files)
        check_closed_to_others(bootstrap, files)
        with barnabas.Admin({**files.client_settings(), "bootstrap.servers": bootstrap}) as admin:
            (topic,) = admin.describe_topics(["orders"]).values()
            # The brokers share the secret that tokens are made with.
            assert admin.create_delegation_token().hmac
        assert all(len(partition.in_sync_replicas) == 3 for partition in topic.partitions)
        commands = commands_with(str(data_dir))
        assert len(commands) >= 3
        for secret in (*files.shared_secrets().values(), files.client_settings()["sasl.jaas.config"]):
            assert not any(secret in command for command in commands)
            assert secret not in output_of(data_dir)


def commands_with(text: str) -> list[str]:
    """The command lines of running processes that have the text in them: everybody may read them."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [command for command in found if text in command]


def test_the_files_are_for_the_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        files = SecureFiles(tmp_path / "data")
        files.make()
    finally:
        os.umask(old)
    assert stat.S_IMODE(files.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.directory.iterdir()} == {0o600}
