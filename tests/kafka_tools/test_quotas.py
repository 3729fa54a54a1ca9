"""configs prints for users, clients and ips what Kafka's tool prints."""

from collections.abc import Iterator

import pytest
from tests.kafka_tools.conftest import Compare
from tests.kafka_tools.normalised import NAME

import barnabas

pytestmark = pytest.mark.java


@pytest.fixture(autouse=True)
def no_quotas(bootstrap: str) -> Iterator[None]:
    yield
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        quotas = admin.describe_client_quotas()
        admin.alter_client_quotas({entity: dict.fromkeys(values) for entity, values in quotas.items()})


@pytest.mark.parametrize(
    ("entity", "added"),
    [
        ("--entity-type clients --entity-name tool-app", "producer_byte_rate=1048576"),
        ("--entity-type clients --entity-default", "consumer_byte_rate=104857600"),
        (
            "--entity-type users --entity-name tool-user --entity-type clients --entity-default",
            "request_percentage=200.5",
        ),
        ("--entity-type users --entity-default", "controller_mutation_rate=12345678"),
        ("--user tool-user --client tool-app", "producer_byte_rate=99999999"),
        ("--entity-type ips --entity-name 10.9.8.7", "connection_creation_rate=1000"),
        ("--entity-type ips --entity-default", "connection_creation_rate=100000"),
    ],
)
def test_quotas(same: Compare, entity: str, added: str) -> None:
    arguments = entity.split()
    same("configs", *arguments, "--alter", "--add-config", added)
    assert added.partition("=")[0] in str(same("configs", *arguments, "--describe"))


def test_a_quota_is_deleted(same: Compare) -> None:
    same("configs", "--client", NAME, "--alter", "--add-config", "producer_byte_rate=1000000")
    same("configs", "--client", NAME, "--alter", "--delete-config", "producer_byte_rate")
    assert same("configs", "--client", NAME, "--describe").lines == []


def test_all_entities_of_a_type(same: Compare) -> None:
    for name in ("tool-a", "tool-b"):
        same("configs", "--client", name, "--alter", "--add-config", "producer_byte_rate=1000000")
    described = same("configs", "--entity-type", "clients", "--describe", ordered=False)
    assert len(described.lines) == 2
