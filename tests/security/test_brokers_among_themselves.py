"""A cluster whose brokers show each other who they are: replication, forwarding and failover still work."""

import json
import subprocess
import sys
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.security.secured_broker import MODULES, PASSWORD
from tests.support.certificates import Authority

from barnabas import Consumer, Producer
from barnabas.client.admin import NewTopic
from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.testing import Cluster

SASL = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": (f'{MODULES["PLAIN"]} required user_alice="{PASSWORD}";'),
    "listener.name.brokers.plain.sasl.jaas.config": (
        f'{MODULES["PLAIN"]} required username="broker" password="b-secret" user_broker="b-secret";'
    ),
    # Short sessions: brokers authenticate again while they replicate. As in Kafka, not within a second.
    "connections.max.reauth.ms": "2000",
}
ALICE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": PASSWORD,
}


def settings_of(protocol: str, directory: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of the brokers, and those of a client."""
    if protocol == "SASL_PLAINTEXT":
        return SASL, ALICE
    authority = Authority()
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority.write_pem(directory / "ca")}
    # With mTLS, a broker shows others the certificate that it also shows to clients.
    brokers = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.server().write_pem(directory / "broker"),
        "listener.name.brokers.ssl.client.auth": "required",
        **trust,
    }
    if protocol == "SSL":
        names = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL,BROKERS:SSL"}
        return {**brokers, **names}, {"security.protocol": "SSL", **trust}
    names = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_SSL,BROKERS:SASL_SSL"}
    return {**SASL, **brokers, **names}, {**ALICE, **trust, "security.protocol": "SASL_SSL"}


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SSL", "SASL_SSL"])
def test_replication_forwarding_and_failover(protocol: str, tmp_path: Path) -> None:
    overrides, client = settings_of(protocol, tmp_path)
    with Cluster(3, overrides) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 3, 3)])
        cluster.wait_until_in_sync("orders")
        settings = {"bootstrap.servers": cluster.bootstrap, **client}
        with Producer(settings) as producer:
            for number in range(300):
                producer.send("orders", str(number).encode(), key=str(number).encode())
                if number == 100:
                    producer.flush()
                    cluster.kill(cluster.leader_of(("orders", 0)))
            producer.flush()
        values: set[bytes] = set()
        reading = {"group.id": "g", "auto.offset.reset": "earliest"}
        with Consumer({**settings, **reading}) as consumer:
            consumer.subscribe(["orders"])
            cluster.wait_until(
                lambda: values.update(record.value for record in consumer.poll(0.5)) or len(values) == 300,
                "all records",
            )
        for name, output in cluster.outputs().items():
            assert "Traceback" not in output and "secret" not in output, f"{name}: {output}"
            assert "cannot authenticate again" not in output, f"{name}: {output}"


def test_scram_between_brokers_from_the_first_start_on(tmp_path: Path) -> None:
    """The credential of the brokers is in a protected ZooKeeper before the first of them starts."""
    module = MODULES["SCRAM-SHA-512"]
    secured = {
        "barnabas.zookeeper.digest": "brokers:zk-secret",
        "zookeeper.set.acl": "true",
        "password.encoder.secret": "encoder-secret",
    }
    overrides = {
        **secured,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.scram-sha-512.sasl.jaas.config": (
            f'{module} required username="broker" password="b-secret";'
        ),
    }
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in secured.items()))
    cluster = Cluster(3, overrides)
    command = [sys.executable, "-m", "barnabas.cli.main", "metadata"]
    cluster.zookeepers.start()
    try:
        where = ["--zookeeper", cluster.zookeeper_connect, "--config", str(file)]
        given = "SCRAM-SHA-512=[name=broker,password=b-secret]\n"
        added = [*command, "add-scram", *where, "--add-scram", "-"]
        subprocess.run(added, input=given, text=True, check=True, timeout=60)
        with cluster:
            with cluster.admin() as admin:
                admin.create_topics([NewTopic("orders", 3, 3)])
            cluster.wait_until_in_sync("orders")
            dumped = subprocess.run(
                [*command, "dump", *where], capture_output=True, text=True, check=True, timeout=60
            )
            assert "orders" in dumped.stdout
            for name, output in cluster.outputs().items():
                assert "Traceback" not in output and "secret" not in output, f"{name}: {output}"
    finally:
        cluster.close()


def test_tokens_between_brokers(tmp_path: Path) -> None:
    """Each broker reads its token from a file, and shows it again while it replicates."""
    key = rsa.generate_private_key(65537, 2048)
    public = jwt.get_algorithm_by_name("RS256").to_jwk(key.public_key(), as_dict=True)
    keys, token = tmp_path / "keys.json", tmp_path / "token"
    keys.write_text(json.dumps({"keys": [{**public, "kid": "one"}]}))
    claims = {"sub": "broker", "aud": "brokers", "exp": int(time.time()) + 300}
    token.write_text(jwt.encode(claims, key, "RS256", headers={"kid": "one"}))
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    overrides = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "brokers",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "listener.name.brokers.oauthbearer.sasl.jaas.config": f"{module} required;",
        "connections.max.reauth.ms": "2000",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:broker",
    }
    with Cluster(3, overrides) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 3, 3)])
        with Producer({"bootstrap.servers": cluster.bootstrap}) as producer:
            begin = time.monotonic()
            # Longer than two sessions of the brokers.
            while time.monotonic() - begin < 5:
                producer.send("orders", b"value").result(20)
        cluster.wait_until_in_sync("orders")
        for name, output in cluster.outputs().items():
            assert "Traceback" not in output and token.read_text() not in output, f"{name}: {output}"
            assert "cannot authenticate again" not in output, f"{name}: {output}"
