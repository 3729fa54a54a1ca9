"""The Java client and Kafka's tools over TLS: stores that keytool made, and certificates of clients."""

import re
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.java.tools import Tools
from tests.support.certificates import PASSWORD, Authority

from barnabas.broker.startup import broker_config
from barnabas.config.definition import ConfigError
from barnabas.testing import Broker

pytestmark = pytest.mark.java

RECORDS = 2000
# With TLS 1.3 a client learns after its own part of the handshake that it is not let in.
REFUSED = re.compile("SSL handshake failed|Failed to process post-handshake messages")


def keytool(*arguments: str) -> None:
    done = subprocess.run(["keytool", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def listener(**settings: str) -> dict[str, str]:
    return {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }


def client_file(directory: Path, **settings: str) -> str:
    path = directory / f"{uuid.uuid4().hex}.properties"
    lines = {"security.protocol": "SSL", **{key.replace("_", "."): value for key, value in settings.items()}}
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return str(path)


def write_and_read(tools: Tools, config: str) -> None:
    topic = f"java-{uuid.uuid4().hex[:8]}"
    tools("kafka-topics", "--create", "--topic", topic, "--command-config", config)
    tools.bare(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", str(RECORDS), "--record-size", "2000", "--throughput", "-1"),
        *("--command-config", config, "--producer-props", f"bootstrap.servers={tools.bootstrap}"),
    )
    read = tools(
        "kafka-console-consumer",
        *("--topic", topic, "--from-beginning", "--max-messages", str(RECORDS), "--timeout-ms", "60000"),
        *("--command-config", config),
    )
    assert len(read.split()) == RECORDS


def test_a_jks_store_is_converted_as_the_error_says(tmp_path: Path) -> None:
    jks, p12 = tmp_path / "broker.jks", tmp_path / "broker.p12"
    keytool(
        *("-genkeypair", "-alias", "broker", "-keyalg", "RSA", "-dname", "CN=127.0.0.1", "-storetype", "JKS"),
        *("-ext", "san=ip:127.0.0.1,dns:localhost", "-keystore", str(jks), "-storepass", PASSWORD),
        *("-keypass", PASSWORD),
    )
    with pytest.raises(ConfigError) as caught:
        broker_config(
            None, overrides=listener(ssl_keystore_location=str(jks), ssl_keystore_password=PASSWORD)
        )
    command = re.search(r"'(keytool [^']*)'", str(caught.value))
    assert command is not None
    passwords = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    keytool(*shlex.split(command[1])[1:], *passwords)
    assert p12.exists()
    keytool(
        *("-exportcert", "-rfc", "-alias", "broker", "-keystore", str(p12), "-storepass", PASSWORD),
        *("-file", str(tmp_path / "broker.crt")),
    )
    keytool(
        *("-importcert", "-noprompt", "-alias", "broker", "-file", str(tmp_path / "broker.crt")),
        *("-keystore", str(tmp_path / "trust.p12"), "-storepass", PASSWORD),
    )
    settings = listener(ssl_keystore_location=str(p12), ssl_keystore_password=PASSWORD)
    with Broker(settings, subprocess=True) as broker:
        config = client_file(
            tmp_path, ssl_truststore_location=str(tmp_path / "trust.p12"), ssl_truststore_password=PASSWORD
        )
        write_and_read(Tools(broker.bootstrap), config)


# ---- certificates of clients


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def broker(directory: Path, authority: Authority) -> Iterator[Broker]:
    """Only clients with a certificate may connect, and only the administrator may do something."""
    settings = listener(
        ssl_keystore_type="PEM",
        ssl_keystore_location=authority.server().write_pem(directory / "server.pem"),
        ssl_truststore_type="PEM",
        ssl_truststore_location=authority.write_pem(directory / "ca.pem"),
        ssl_client_auth="required",
        ssl_principal_mapping_rules="RULE:^CN=([^,]*),OU=Admins.*$/$1/L,DEFAULT",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:admin;User:CN=localhost,O=Example",
    )
    with Broker(settings, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_with_a_certificate(
    broker: Broker, directory: Path, authority: Authority, version: str
) -> None:
    issued = authority.client("CN=Admin,OU=Admins,O=Example")
    config = client_file(
        directory,
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(directory / "ca.pem"),
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=issued.write_pkcs12(directory / f"{version}.p12"),
        ssl_keystore_password=PASSWORD,
        ssl_enabled_protocols=version,
    )
    write_and_read(Tools(broker.bootstrap), config)


def test_clients_that_are_not_let_in(broker: Broker, directory: Path, authority: Authority) -> None:
    trust = {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(directory / "ca.pem")}
    tools = Tools(broker.bootstrap)
    nobody = client_file(directory, **trust)
    assert REFUSED.search(tools.refused("kafka-topics", "--list", "--command-config", nobody))
    foreign = Authority().client("CN=Admin,OU=Admins").write_pem(directory / "foreign.pem")
    config = client_file(directory, **trust, ssl_keystore_type="PEM", ssl_keystore_location=foreign)
    assert REFUSED.search(tools.refused("kafka-topics", "--list", "--command-config", config))
    # Known, but without rights.
    guest = authority.client("CN=guest,O=Example").write_pem(directory / "guest.pem")
    config = client_file(directory, **trust, ssl_keystore_type="PEM", ssl_keystore_location=guest)
    refusal = tools.refused("kafka-topics", "--create", "--topic", "no", "--command-config", config)
    assert "Authorization failed" in refusal
