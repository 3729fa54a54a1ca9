"""Our clients on Apache Kafka over TLS and SASL, and what the admin client says about users, rights and
tokens.

Kafka answers a change when the controller has it. The broker learns of it a moment later, and of its parts
one after the other: what is asked right after a change is asked with `soon`."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from tests.java.kafka_server import KafkaServer
from tests.support.certificates import Authority
from tests.support.logins import logins_by_connection

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
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.client.errors import AuthenticationError, ErrorCode
from barnabas.security.quotas import EXACT, FilterPart
from barnabas.testing.ports import free_ports

pytestmark = pytest.mark.java

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SESSION_MS = 2000


@dataclass
class Place:
    tls: dict[str, str]
    mutual: dict[str, str]
    admin: dict[str, str]
    authority: Authority


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("kafka")
    authority = Authority()
    ca = authority.write_pem(directory / "ca.pem")
    server = KafkaServer(directory)
    sasl_port, mutual_port = free_ports(2)
    controller = f"127.0.0.1:{server.controller_port}"
    addresses = f"SASL_SSL://127.0.0.1:{sasl_port},SSL://127.0.0.1:{mutual_port}"
    server.overrides |= {
        "listeners": f"PLAINTEXT://{server.bootstrap},{addresses},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{server.bootstrap},{addresses}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:PLAINTEXT"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.server().write_pem(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": ca,
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_alice="alice-secret";',
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "connections.max.reauth.ms": str(SESSION_MS),
        "delegation.token.secret.key": "token-secret",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:CN=alice,O=Example",
    }
    server.start()
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
    admin = {"bootstrap.servers": server.bootstrap}
    try:
        with Admin(admin) as client:
            client.create_topics([NewTopic("orders", 1)])
            for mechanism in MECHANISMS[1:]:
                client.alter_user_scram_credentials([ScramUpsertion("alice", "alice-secret", mechanism)])
        with Producer(admin) as producer:
            # Tries again until the broker leads the new partition.
            producer.send("orders", b"first").result(30)
        made = Place(tls, mutual, admin, authority)
        for mechanism in MECHANISMS:
            soon(partial(can_log_in, alice(made, mechanism)))
        yield made
    finally:
        server.stop()


def alice(place: Place, mechanism: str, password: str = "alice-secret") -> dict[str, str]:
    return {**place.tls, "sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password}


Found = TypeVar("Found")


def soon(ask: Callable[[], Found]) -> Found:
    """The first answer that is not empty."""
    deadline = time.monotonic() + 60
    while not (found := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def can_log_in(settings: dict[str, str]) -> bool:
    with Admin(settings) as admin:
        try:
            admin.list_topics()
        except AuthenticationError:
            return False
    return True


def described_users(admin: Admin, *names: str) -> dict[str, list[ScramCredentialInfo]]:
    """Nothing, if one of them does not exist."""
    try:
        return admin.describe_user_scram_credentials(names)
    except AdminError as error:
        assert error.code is ErrorCode.RESOURCE_NOT_FOUND
        return {}


def write_and_read(settings: dict[str, str], is_enough: Callable[[], bool] = lambda: True) -> None:
    deadline = time.monotonic() + 120
    with Producer(settings) as producer:
        while True:
            offset = producer.send("orders", b"value" * 1000).result(30).offset
            assert time.monotonic() < deadline
            if is_enough():
                break
    with Consumer(settings) as consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        last = -1
        while last < offset:
            last = max([last, *(record.offset for record in consumer.poll(1.0))])
            assert time.monotonic() < deadline


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    return logins_by_connection(monkeypatch)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl_over_tls_beyond_the_end_of_a_session(
    place: Place, mechanism: str, logins: Counter[object]
) -> None:
    """A connection logs in again, twice. Otherwise Kafka would close it, and each would log in once."""
    write_and_read(alice(place, mechanism), lambda: max(logins.values()) > 2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password(place: Place, mechanism: str) -> None:
    with Admin(alice(place, mechanism, "wrong")) as admin, pytest.raises(AuthenticationError) as caught:
        admin.list_topics()
    assert "Authentication failed" in str(caught.value)


def test_a_mechanism_that_is_not_enabled(place: Place) -> None:
    settings = {**place.tls, "sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": lambda: "t"}
    with Admin(settings) as admin, pytest.raises(AuthenticationError, match=r"it takes .*PLAIN"):
        admin.list_topics()


def test_certificates(place: Place, tmp_path: Path) -> None:
    def shown(authority: Authority) -> dict[str, str]:
        file = authority.client("CN=alice,O=Example").write_pem(tmp_path / "client.pem")
        return {**place.mutual, "ssl.keystore.type": "PEM", "ssl.keystore.location": file}

    write_and_read(shown(place.authority))
    for settings in (place.mutual, shown(Authority("CN=Another"))):
        with Admin(settings) as admin, pytest.raises(AuthenticationError, match="certificate of this client"):
            admin.list_topics()


def test_users(place: Place) -> None:
    with Admin(place.admin) as admin:
        admin.alter_user_scram_credentials(
            [ScramUpsertion("bob", "first", iterations=8192), ScramUpsertion("carol", "c", "SCRAM-SHA-256")]
        )
        found = soon(lambda: described_users(admin, "bob", "carol"))
        assert found == {
            "bob": [ScramCredentialInfo("SCRAM-SHA-512", 8192)],
            "carol": [ScramCredentialInfo("SCRAM-SHA-256", 4096)],
        }
        assert found.items() <= admin.describe_user_scram_credentials().items()
        with pytest.raises(AdminError) as caught:
            admin.alter_user_scram_credentials(
                [ScramUpsertion("bob", "x", iterations=10), ScramDeletion("carol", "SCRAM-SHA-256")]
            )
        assert caught.value.errors["bob"].code is ErrorCode.UNACCEPTABLE_CREDENTIAL
        with pytest.raises(AdminError) as caught:
            admin.alter_user_scram_credentials([ScramUpsertion("bob", "x"), ScramDeletion("bob")])
        assert caught.value.code is ErrorCode.DUPLICATE_RESOURCE
        soon(lambda: not described_users(admin, "carol"))
    settings = {**alice(place, "SCRAM-SHA-512", "first"), "sasl.username": "bob"}
    soon(lambda: can_log_in(settings))
    with Admin(settings) as admin:
        assert "orders" not in admin.list_topics()


def test_acls(place: Place) -> None:
    acl = Acl(
        ResourceType.TOPIC, "bills", PatternType.PREFIXED, "User:bob", "*", Operation.READ, Permission.ALLOW
    )
    group = acl._replace(resource_type=ResourceType.GROUP, pattern_type=PatternType.LITERAL)
    with Admin(place.admin) as admin:
        admin.create_acls([acl, group])
        soon(lambda: set(admin.describe_acls()) == {acl, group})
        assert admin.describe_acls(AclFilter(ResourceType.TOPIC, "bills-1", PatternType.MATCH)) == [acl]
        assert admin.describe_acls(AclFilter(principal="User:nobody")) == []
        groups = AclFilter(ResourceType.GROUP)
        assert admin.delete_acls([groups]) == {groups: [group]}
        # Kafka answers UNKNOWN_SERVER_ERROR, our broker INVALID_REQUEST.
        with pytest.raises(AdminError):
            admin.create_acls([acl._replace(operation=Operation.ANY)])
        assert admin.delete_acls([AclFilter()]) == {AclFilter(): [acl]}


def test_quotas(place: Place) -> None:
    bob = (("user", "bob"),)
    with Admin(place.admin) as admin:
        admin.alter_client_quotas({bob: {"producer_byte_rate": 1000.0}})
        found = soon(lambda: admin.describe_client_quotas([FilterPart("user", EXACT, "bob")]))
        assert found == {bob: {"producer_byte_rate": 1000.0}}
        admin.alter_client_quotas({bob: {"producer_byte_rate": None}})


def test_delegation_tokens(place: Place) -> None:
    with Admin(alice(place, "SCRAM-SHA-256")) as admin:
        token = admin.create_delegation_token(["User:bob"], max_lifetime_ms=600_000)
        assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ("User:bob",))
        assert token.issued_ms < token.expires_ms <= token.ends_ms
        assert soon(lambda: admin.describe_delegation_tokens(["User:alice"])) == [token]
        jaas = f'{SCRAM} required username="{token.token_id}" password="{token.password}" tokenauth="true";'
        settings = {**place.tls, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
        soon(lambda: can_log_in(settings))
        write_and_read(settings)
        assert admin.renew_delegation_token(token.hmac, period_ms=60_000) <= token.ends_ms
        assert admin.expire_delegation_token(token.hmac) <= time.time() * 1000 + 1000
