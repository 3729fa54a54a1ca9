"""The Java client and Kafka's tools log in with every mechanism; users, tokens, wrong passwords."""

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.java.tools import Shell, Tools

from barnabas.testing import Broker

pytestmark = pytest.mark.java

PACKAGE = "org.apache.kafka.common.security"
KEY = rsa.generate_private_key(65537, 2048)
USERS = 'user_admin="admin-secret" user_alice="alice-secret"'
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Without an owner, Kafka's tool asks for the tokens of nobody.
DESCRIBE = ("--describe", "--owner-principal", "User:admin")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sasl")


@pytest.fixture(scope="module")
def broker(directory: Path) -> Iterator[Broker]:
    entry = jwt.get_algorithm_by_name("RS256").to_jwk(KEY.public_key(), as_dict=True)
    keys = directory / "keys.json"
    keys.write_text(json.dumps({"keys": [{**entry, "kid": "one"}]}))
    overrides = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f"{PACKAGE}.plain.PlainLoginModule required {USERS};"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "events",
        "delegation.token.secret.key": "shared by all brokers",
        # Clients authenticate again while they run.
        "connections.max.reauth.ms": "2000",
    }
    with Broker(overrides, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


@pytest.fixture(scope="module")
def tools(broker: Broker, directory: Path, jars: str) -> Iterator[Tools]:
    """A JVM of its own: Java reads tokens only from files that this property allows."""
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={(directory / 'token').as_uri()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", allowed)
        shell = Shell()
    yield Tools(broker.bootstrap, shell)
    shell.close()


def config(directory: Path, mechanism: str, module: str, **more: str) -> str:
    path = directory / f"{uuid.uuid4().hex}.properties"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{PACKAGE}.{module};",
        **more,
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(path)


def password_config(directory: Path, mechanism: str, user: str, password: str, more: str = "") -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    login = f'{module} required username="{user}" password="{password}"{more}'
    return config(directory, mechanism, login)


@pytest.fixture(scope="module")
def admin(directory: Path) -> str:
    return password_config(directory, "PLAIN", "admin", "admin-secret")


def write_and_read(tools: Tools, login: str) -> None:
    topic = f"java-{uuid.uuid4().hex[:8]}"
    tools.bare(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "50", "--record-size", "10", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={tools.bootstrap}"),
        *("--command-config", login),
    )
    read = tools(
        "kafka-console-consumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "50", "--timeout-ms", "20000"),
        *("--command-config", login),
    )
    assert len(read.split()) == 50


def test_plain(tools: Tools, directory: Path) -> None:
    write_and_read(tools, password_config(directory, "PLAIN", "alice", "alice-secret"))


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram(tools: Tools, directory: Path, admin: str, mechanism: str) -> None:
    user = f"user-{uuid.uuid4().hex[:8]}"
    named = ("--entity-type", "users", "--entity-name", user, "--command-config", admin)
    added = f"{mechanism}=[iterations=8192,password=its-secret]"
    assert "Completed updating" in tools("kafka-configs", "--alter", *named, "--add-config", added)
    described = tools("kafka-configs", "--describe", *named)
    assert f"for user-principal '{user}' are {mechanism}=iterations=8192" in described
    write_and_read(tools, password_config(directory, mechanism, user, "its-secret"))
    tools("kafka-configs", "--alter", *named, "--delete-config", mechanism)
    assert mechanism not in tools("kafka-configs", "--describe", *named)


def test_oauthbearer(tools: Tools, directory: Path) -> None:
    claims = {"sub": "alice", "aud": "events", "iat": int(time.time()), "exp": int(time.time()) + 600}
    token = directory / "token"
    token.write_text(jwt.encode(claims, KEY, "RS256", headers={"kid": "one"}))
    login = config(
        directory,
        "OAUTHBEARER",
        "oauthbearer.OAuthBearerLoginModule required",
        **{
            "sasl.login.callback.handler.class": f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        },
    )
    write_and_read(tools, login)


def test_delegation_tokens(tools: Tools, directory: Path, admin: str) -> None:
    created = tools(
        "kafka-delegation-tokens",
        *("--command-config", admin, "--create", "--max-life-time-period", "-1"),
        *("--renewer-principal", "User:alice"),
    )
    match = re.search(r"^(\S+)\s+(\S+=)\s+User:admin\s+User:admin\s+\[?User:alice", created, re.MULTILINE)
    assert match is not None, created
    token_id, hmac = match.groups()
    write_and_read(tools, password_config(directory, SCRAM[0], token_id, hmac, ' tokenauth="true"'))
    alice = password_config(directory, "PLAIN", "alice", "alice-secret")
    renewed = tools(
        "kafka-delegation-tokens",
        *("--command-config", alice, "--renew", "--renew-time-period", "-1", "--hmac", hmac),
    )
    assert "Completed renew operation" in renewed
    described = tools("kafka-delegation-tokens", "--command-config", admin, *DESCRIBE)
    assert token_id in described
    expired = tools(
        "kafka-delegation-tokens",
        *("--command-config", admin, "--expire", "--expiry-time-period", "-1", "--hmac", hmac),
    )
    assert "Completed expire operation" in expired
    assert token_id not in tools("kafka-delegation-tokens", "--command-config", admin, *DESCRIBE)


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_a_wrong_password(tools: Tools, directory: Path, mechanism: str) -> None:
    login = password_config(directory, mechanism, "alice", "wrong")
    refused = tools.refused("kafka-topics", "--list", "--command-config", login)
    assert "SaslAuthenticationException" in refused


def test_sessions_go_on_while_clients_authenticate_again(tools: Tools, directory: Path) -> None:
    """The producer runs for longer than two sessions; the Java client notices a session that ends."""
    topic = f"java-{uuid.uuid4().hex[:8]}"
    printed = tools.bare(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "600", "--record-size", "10", "--throughput", "100"),
        *("--producer-props", f"bootstrap.servers={tools.bootstrap}"),
        *("--command-config", password_config(directory, "PLAIN", "alice", "alice-secret")),
    )
    assert "600 records sent" in printed
