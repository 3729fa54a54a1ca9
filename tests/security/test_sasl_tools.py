"""The command line on a broker with SASL: users, delegation tokens, and the first credential of all."""

import io
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.errors import KafkaError
from barnabas.testing import Broker

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="admin-secret";'
OVERRIDES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "delegation.token.secret.key": "shared by all brokers",
}


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def login(mechanism: str, user: str, password: str, **more: str) -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    options = "".join(f' {name}="{value}"' for name, value in more.items())
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        f'username="{user}" password="{password}"{options};',
    }


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(OVERRIDES, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


def file_of(directory: Path, settings: dict[str, str]) -> Path:
    path = directory / f"{uuid.uuid4().hex}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


class Tool:
    def __init__(self, broker: Broker, directory: Path, settings: dict[str, str]) -> None:
        self._common = ("--bootstrap-server", broker.bootstrap)
        self._config = ("--command-config", str(file_of(directory, settings)))

    def __call__(self, name: str, *arguments: str) -> Ran:
        return run(name, *self._common, *self._config, *arguments)


@pytest.fixture
def admin(broker: Broker, tmp_path: Path) -> Tool:
    return Tool(broker, tmp_path, login("PLAIN", "admin", "admin-secret"))


def can_produce(broker: Broker, settings: dict[str, str]) -> bool:
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    try:
        with barnabas.Producer({"bootstrap.servers": broker.bootstrap, **settings}) as producer:
            producer.send(topic, b"hello").result(10)
    except KafkaError:
        return False
    return True


def test_users(broker: Broker, admin: Tool) -> None:
    added = admin(
        "configs",
        *("--alter", "--entity-type", "users", "--entity-name", "alice"),
        *("--add-config", "SCRAM-SHA-256=[iterations=8192,password=a=lice,s],SCRAM-SHA-512=[password=other]"),
    )
    assert added == Ran(0, "Completed updating config for user alice.\n", "")
    described = admin("configs", "--describe", "--user", "alice")
    assert described.out == (
        "SCRAM credential configs for user-principal 'alice' are "
        "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096\n"
    )
    (entry,) = json.loads(admin("configs", "--describe", "--entity-type", "users", "--json").out)
    assert entry == {
        "entity": {"user": "alice"},
        "credentials": {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096},
    }
    assert can_produce(broker, login("SCRAM-SHA-256", "alice", "a=lice,s"))
    assert can_produce(broker, login("SCRAM-SHA-512", "alice", "other"))
    assert not can_produce(broker, login("SCRAM-SHA-512", "alice", "wrong"))
    deleted = admin("configs", "--alter", "--user", "alice", "--delete-config", "SCRAM-SHA-256,SCRAM-SHA-512")
    assert deleted.code == 0
    assert not can_produce(broker, login("SCRAM-SHA-512", "alice", "other"))
    again = admin("configs", "--alter", "--user", "alice", "--delete-config", "SCRAM-SHA-256")
    assert again.code == 1 and "does not exist" in again.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "--user bob --add-config SCRAM-SHA-256=[iterations=10,password=hunter2]",
            "less than the minimum 4096",
        ),
        ("--user bob --add-config SCRAM-SHA-256=[iterations=20000,password=hunter2]", "Too many iterations"),
        ("--user bob --add-config SCRAM-SHA-256=[pass=hunter2]", "Invalid credential property"),
        ("--user-defaults --add-config SCRAM-SHA-256=[password=hunter2]", "is not allowed"),
        (
            "--user bob --add-config SCRAM-SHA-256=[password=hunter2],producer_byte_rate=1",
            "Cannot alter both quota and SCRAM",
        ),
        ("--user bob --client c --add-config SCRAM-SHA-256=[password=hunter2]", "Only quota configs"),
    ],
)
def test_credentials_that_are_refused(admin: Tool, arguments: str, sentence: str) -> None:
    ran = admin("configs", "--alter", *arguments.split())
    assert ran.code == 1 and sentence in ran.err
    assert "hunter2" not in ran.err + ran.out


def test_delegation_tokens(broker: Broker, admin: Tool, tmp_path: Path) -> None:
    created = admin(
        "delegation-tokens", "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
    )
    assert created.code == 0, created.err
    match = re.search(r"tokenId : (\S+)\n", created.out)
    assert match is not None
    (token,) = json.loads(admin("delegation-tokens", "--describe", "--json").out)
    assert (token["tokenId"], token["owner"], token["renewers"]) == (match[1], "User:admin", ["User:bob"])
    assert token["hmac"] in created.out
    settings = login("SCRAM-SHA-256", token["tokenId"], token["hmac"], tokenauth="true")
    assert can_produce(broker, settings)
    assert not can_produce(broker, login("SCRAM-SHA-256", token["tokenId"], token["hmac"]))
    # A token gives no tokens.
    by_token = Tool(broker, tmp_path, settings)
    refused = by_token("delegation-tokens", "--create", "--max-life-time-period", "-1")
    assert refused.code == 1 and refused.err
    renewed = admin("delegation-tokens", "--renew", "--renew-time-period", "-1", "--hmac", token["hmac"])
    assert renewed.out.startswith("Completed renew operation. New expiry date : 20")
    expired = admin("delegation-tokens", "--expire", "--expiry-time-period", "-1", "--hmac", token["hmac"])
    assert expired.out.startswith("Completed expire operation.")
    assert admin("delegation-tokens", "--describe").out.startswith("Total number of tokens : 0\n")
    assert not can_produce(broker, settings)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "exactly one action"),
        ("--create --describe", "exactly one action"),
        ("--create", "--create needs --max-life-time-period"),
        ("--renew --renew-time-period -1", "--renew needs --hmac"),
        ("--describe --hmac x", "--hmac cannot be used with --describe"),
        ("--describe --owner-principal alice", "must be written type:name"),
        ("--expire --expiry-time-period -1 --hmac !", "Base64"),
    ],
)
def test_wrong_options_of_delegation_tokens(admin: Tool, arguments: str, sentence: str) -> None:
    ran = admin("delegation-tokens", *arguments.split())
    assert ran.code == 1 and sentence in ran.err


def test_the_first_credential_is_stored_before_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    added = run(
        *("metadata", "add-scram", "--data-dir", str(data)),
        *("--add-scram", "SCRAM-SHA-256=[name=admin,iterations=8192,password=first, secret]"),
    )
    assert added == Ran(0, "Added a SCRAM-SHA-256 credential for user admin.\n", "")
    monkeypatch.setattr("sys.stdin", io.StringIO("SCRAM-SHA-512=[name=broker,password=second]\n"))
    assert run("metadata", "add-scram", "--data-dir", str(data), "--add-scram", "-").code == 0
    dumped = run("metadata", "dump", "--data-dir", str(data), "--log")
    assert "scram-credential user=admin mechanism=1 credential=(hidden)" in dumped.out
    overrides = {**OVERRIDES, "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"}
    with Broker(overrides, subprocess=True, data_dir=data) as broker:
        assert can_produce(broker, login("SCRAM-SHA-256", "admin", "first, secret"))
        assert can_produce(broker, login("SCRAM-SHA-512", "broker", "second"))
        while_running = run(
            *("metadata", "add-scram", "--data-dir", str(data)),
            *("--add-scram", "SCRAM-SHA-256=[name=late,password=hunter2]"),
        )
        assert while_running.code == 1 and "another broker" in while_running.err
        assert "hunter2" not in while_running.err


@pytest.mark.parametrize(
    ("specification", "sentence"),
    [
        ("SCRAM-SHA-1=[name=a,password=hunter2]", "is not one of SCRAM-SHA-256, SCRAM-SHA-512"),
        ("SCRAM-SHA-256=[name=a,iterations=1,password=hunter2]", "must be from 4096 to 16384"),
        ("SCRAM-SHA-256=[password=hunter2]", "must be written"),
    ],
)
def test_first_credentials_that_are_refused(tmp_path: Path, specification: str, sentence: str) -> None:
    ran = run("metadata", "add-scram", "--data-dir", str(tmp_path), "--add-scram", specification)
    assert ran.code == 1 and sentence in ran.err
    assert "hunter2" not in ran.err
