"""The samples of the table of rights on Apache Kafka itself: what they say about rights is true there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from tests.java.kafka_server import KafkaServer
from tests.security.rights_checks import check_rights, prepare
from tests.security.rights_requests import World
from tests.security.rights_samples import SAMPLES, Sample
from tests.security.users import ADMIN, LONG_SESSIONS
from tests.support.raw_client import RawClient

from barnabas.broker.apis import ROWS
from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.security.acls import Acl
from barnabas.security.principal import Principal
from barnabas.testing.ports import free_ports
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = pytest.mark.java

# In Kafka only the controller serves these, on a listener of its own: AlterPartition, Envelope,
# BrokerHeartbeat, AllocateProducerIds.
OF_CONTROLLERS = (56, 58, 63, 67)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class KafkaPeer:
    patience_seconds = 5.0

    def __init__(self, port: int) -> None:
        self._port = port
        self._admin = self.client(ADMIN)

    def client(self, principal: Principal) -> RawClient:
        client = RawClient("127.0.0.1", self._port)
        client.call(17, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        secret = f"\0{principal.name}\0{principal.name}-secret".encode()
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=secret))
        assert answer.error_code == 0, answer.error_message
        return client

    def set_acls(self, acls: Iterable[Acl]) -> None:
        wanted = {_creation(acl) for acl in acls}
        present = self._acls()
        if present - wanted:
            filters = [DeleteAclsFilter(**_named(each, FILTER_FIELDS)) for each in present - wanted]
            answer = self._admin.call(31, 3, DeleteAclsRequest(filters=filters))
            assert not any(each.error_code for each in answer.filter_results), answer
        if wanted - present:
            creations = [AclCreation(**_named(each, CREATION_FIELDS)) for each in wanted - present]
            answer = self._admin.call(30, 3, CreateAclsRequest(creations=creations))
            assert not any(each.error_code for each in answer.results), answer
        while self._acls() != wanted:
            pass

    def _acls(self) -> set[tuple[Any, ...]]:
        nothing: dict[str, Any] = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
        request = DescribeAclsRequest(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1, **nothing
        )
        answer = self._admin.call(29, 3, request)
        assert answer.error_code == 0, answer.error_message
        return {
            (
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        }


CREATION_FIELDS = (
    *("resource_type", "resource_name", "resource_pattern_type"),
    *("principal", "host", "operation", "permission_type"),
)
FILTER_FIELDS = (
    *("resource_type_filter", "resource_name_filter", "pattern_type_filter"),
    *("principal_filter", "host_filter", "operation", "permission_type"),
)


def _creation(acl: Acl) -> tuple[Any, ...]:
    return tuple(int(each) if isinstance(each, int) else each for each in acl)


def _named(values: tuple[Any, ...], fields: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(fields, values, strict=True))


@pytest.fixture(scope="module")
def kafka(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    (port,) = free_ports(1)
    server = KafkaServer(tmp_path_factory.mktemp("kafka"))
    server.overrides = {
        "listeners": (
            f"PLAINTEXT://{server.bootstrap},USERS://127.0.0.1:{port},"
            f"CONTROLLER://127.0.0.1:{server.controller_port}"
        ),
        "advertised.listeners": f"PLAINTEXT://{server.bootstrap},USERS://127.0.0.1:{port}",
        "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT"),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": (
            f'{PLAIN} required user_admin="admin-secret" user_alice="alice-secret";'
        ),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
        **LONG_SESSIONS,
    }
    server.users_port = port  # type: ignore[attr-defined]
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def peer(kafka: KafkaServer) -> KafkaPeer:
    return KafkaPeer(kafka.users_port)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def world(kafka: KafkaServer, peer: KafkaPeer) -> World:
    return prepare(peer, -1, str(kafka.log_dir))


def _name(sample: Sample) -> str:
    return f"{ROWS[sample.api_key].name}-v{sample.version}"


@pytest.mark.parametrize(
    "sample", [each for each in SAMPLES if each.api_key not in OF_CONTROLLERS], ids=_name
)
def test_each_right(peer: KafkaPeer, world: World, sample: Sample) -> None:
    check_rights(peer, world, sample)
