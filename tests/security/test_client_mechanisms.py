"""Our clients over SASL_SSL with every mechanism, and with certificates; ACLs, users and tokens by the admin
client."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.certificates import Authority

from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas.client.admin import (
    Acl,
    AclFilter,
    AdminError,
    NewTopic,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.client.errors import AuthenticationError, ErrorCode, KafkaError
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

KEY = rsa.generate_private_key(65537, 2048)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
# A client authenticates again when at most 15 % of it are left; on a busy machine that must be enough time.
SESSION_MS = 5000


@dataclass
class Place:
    """`admin` has the settings of the super user, `tls` what every client needs to reach the listener
    SASL_SSL."""

    authority: Authority
    admin: dict[str, str]
    tls: dict[str, str]
    mutual: dict[str, str]
    broker: Broker

    def login(self, mechanism: str, **more: Any) -> dict[str, Any]:
        return {**self.tls, "sasl.mechanism": mechanism, **more}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("place")
    authority = Authority()
    public = jwt.get_algorithm_by_name("RS256").to_jwk(KEY.public_key(), as_dict=True)
    (directory / "keys.json").write_text(json.dumps({"keys": [{**public, "kid": "one"}]}))
    sasl_port, mutual_port = free_ports(2)
    ca = authority.write_pem(directory / "ca.pem")
    overrides = {
        "listeners": f"SASL_SSL://127.0.0.1:{sasl_port},MUTUAL://127.0.0.1:{mutual_port}",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,MUTUAL:SSL",
        "security.inter.broker.protocol": "SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.server().write_pem(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": ca,
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_admin="admin-secret";',
        "sasl.oauthbearer.jwks.endpoint.url": (directory / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "events",
        "delegation.token.secret.key": "token-secret",
        "connections.max.reauth.ms": str(SESSION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    tls = {
        "bootstrap.servers": f"127.0.0.1:{sasl_port}",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": ca,
    }
    mutual = {
        "bootstrap.servers": f"127.0.0.1:{mutual_port}",
        "security.protocol": "SSL",
        "ssl.ca.location": ca,
    }
    admin = {**tls, "sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": "admin-secret"}
    with Broker(overrides, subprocess=True, data_dir=directory / "data") as broker:
        with Admin(admin) as client:
            client.create_topics([NewTopic("orders", 1)])
            client.create_acls(
                [may(user, each) for user in USERS for each in (Operation.READ, Operation.WRITE)]
            )
        yield Place(authority, admin, tls, mutual, broker)
        output = broker.output()
        assert "Traceback" not in output, output
        assert not [secret for secret in ("admin-secret", "alice-secret", "token-secret") if secret in output]


USERS = ("alice", "carol", "dave")


def may(user: str, operation: Operation, topic: str = "orders") -> Acl:
    return Acl(
        ResourceType.TOPIC, topic, PatternType.LITERAL, f"User:{user}", "*", operation, Permission.ALLOW
    )


def write_and_read(settings: dict[str, Any], seconds: float = 0.0) -> None:
    """Write for this long, at least one record, then read it. Without retries, so that nothing lost is
    hidden."""
    with Producer({**settings, "retries": "0"}) as producer:
        end = time.monotonic() + seconds
        while True:
            offset = producer.send("orders", b"value").result(30).offset
            if time.monotonic() >= end:
                break
    with Consumer(settings) as consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        deadline = time.monotonic() + 30
        while not (records := list(consumer.poll(1.0))):
            assert time.monotonic() < deadline
        assert records[0].offset == offset


# ---- who is let in


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_from_the_first_password_to_the_last(place: Place, mechanism: str) -> None:
    settings = place.login(mechanism, **{"sasl.username": "alice", "sasl.password": "alice-secret"})
    with Admin(place.admin) as admin:
        admin.alter_user_scram_credentials([ScramUpsertion("alice", "alice-secret", mechanism, 8192)])
        infos = admin.describe_user_scram_credentials(["alice"])["alice"]
        assert (mechanism, 8192) in [(info.mechanism, info.iterations) for info in infos]
        write_and_read(settings, 1.5 * SESSION_MS / 1000)
        admin.alter_user_scram_credentials([ScramDeletion("alice", mechanism)])
    with Admin(settings) as refused, pytest.raises(AuthenticationError, match=mechanism):
        refused.list_topics()


def test_a_delegation_token(place: Place) -> None:
    with Admin(place.admin) as admin:
        admin.alter_user_scram_credentials([ScramUpsertion("dave", "dave-secret")])
    owner = place.login("SCRAM-SHA-512", **{"sasl.username": "dave", "sasl.password": "dave-secret"})
    with Admin(owner) as admin:
        token = admin.create_delegation_token(["User:admin"], max_lifetime_ms=600_000)
        assert token.owner == "User:dave" and token.expires_ms > time.time() * 1000
        assert [each.token_id for each in admin.describe_delegation_tokens()] == [token.token_id]
        jaas = f'{SCRAM} required username="{token.token_id}" password="{token.password}" tokenauth="true";'
        settings = place.login("SCRAM-SHA-256", **{"sasl.jaas.config": jaas})
        write_and_read(settings)
        assert admin.renew_delegation_token(token.hmac) >= token.issued_ms
        admin.expire_delegation_token(token.hmac)
    with Admin(settings) as refused, pytest.raises(AuthenticationError):
        refused.list_topics()
    assert token.password not in place.broker.output()


def signed(seconds: float = 300, **claims: Any) -> str:
    standard = {"sub": "carol", "aud": "events", "exp": int(time.time() + seconds), "iat": int(time.time())}
    return jwt.encode({**standard, **claims}, KEY, "RS256", headers={"kid": "one"})


def test_a_token_of_a_function(place: Place) -> None:
    write_and_read(
        place.login("OAUTHBEARER", **{"sasl.oauth.token.provider": signed}), 1.5 * SESSION_MS / 1000
    )
    wrong = place.login("OAUTHBEARER", **{"sasl.oauth.token.provider": lambda: signed(aud="others")})
    with Admin(wrong) as refused, pytest.raises(AuthenticationError, match="OAUTHBEARER"):
        refused.list_topics()


class Provider(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": signed(), "expires_in": 300}).encode())

    def log_message(self, *arguments: Any) -> None:
        """Not to the terminal."""


def test_a_token_of_an_endpoint_as_java_is_configured(place: Place) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    with HTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            settings = {
                "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{server.server_port}/token",
                "sasl.jaas.config": f'{module} required clientId="carol" clientSecret="c-secret";',
            }
            write_and_read(place.login("OAUTHBEARER", **settings))
        finally:
            server.shutdown()
            thread.join()


def test_a_certificate_is_a_login(place: Place, tmp_path: Path) -> None:
    def shown(authority: Authority, subject: str) -> dict[str, str]:
        issued = authority.client(subject)
        return {
            **place.mutual,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": issued.write_pem(tmp_path / subject),
        }

    write_and_read(shown(place.authority, "CN=carol"))
    with Producer(shown(place.authority, "CN=mallory")) as producer, pytest.raises(KafkaError) as caught:
        producer.send("orders", b"v").result(30)
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for settings in (place.mutual, shown(Authority("CN=Another"), "CN=carol")):
        with Admin(settings) as admin, pytest.raises(AuthenticationError, match="certificate of this client"):
            admin.list_topics()


# ---- what they may do


def test_acls(place: Place) -> None:
    acl, other = may("bob", Operation.READ, "bills"), may("bob", Operation.DESCRIBE, "bills")
    with Admin(place.admin) as admin:
        admin.create_acls([acl, other])
        admin.create_acls([acl])
        bobs = AclFilter(principal="User:bob")
        assert sorted(admin.describe_acls(bobs)) == sorted([acl, other])
        assert admin.describe_acls(AclFilter(ResourceType.TOPIC, "bills", PatternType.MATCH)) != []
        reads = AclFilter(principal="User:bob", operation=Operation.READ)
        assert admin.delete_acls([reads]) == {reads: [acl]}
        assert admin.describe_acls(bobs) == [other]
        with pytest.raises(AdminError) as caught:
            admin.create_acls([may("bob", Operation.ANY), may("bob", Operation.READ, "bills")])
        assert caught.value.code is ErrorCode.INVALID_REQUEST
        assert list(caught.value.errors) == [may("bob", Operation.ANY)]
        admin.delete_acls([bobs])


def test_every_client_gets_the_error_of_a_user_without_rights(place: Place) -> None:
    settings = place.login("OAUTHBEARER", **{"sasl.oauth.token.provider": lambda: signed(sub="nobody")})
    with Producer(settings) as producer, pytest.raises(KafkaError) as caught:
        producer.send("orders", b"v").result(30)
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with Consumer({**settings, "group.id": "g"}) as consumer, pytest.raises(KafkaError) as caught:
        consumer.subscribe(["orders"])
        consumer.poll(30)
    assert caught.value.code in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with Admin(settings) as admin, pytest.raises(KafkaError) as caught:
        admin.create_acls([may("nobody", Operation.READ)])
    assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
