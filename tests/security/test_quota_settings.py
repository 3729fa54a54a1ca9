"""Quotas are described and changed by clients, kept by a restart, and known to all brokers of a cluster."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.raw_client import RawClient

from barnabas.client.admin import Admin, AdminError
from barnabas.errors import ErrorCode
from barnabas.security.quotas import CLIENT_ID, DEFAULT, EXACT, IP, SPECIFIED, USER, Entity, FilterPart
from barnabas.testing import Broker, Cluster
from barnabas.wire.messages import alter_client_quotas as altering

RATE = "producer_byte_rate"
ALICE: Entity = ((USER, "alice"),)
ALICE_APP: Entity = ((CLIENT_ID, "app"), (USER, "alice"))
ALICE_ANY: Entity = ((CLIENT_ID, None), (USER, "alice"))
ANY_CLIENT: Entity = ((CLIENT_ID, None),)
ANY_ADDRESS: Entity = ((IP, None),)
ADDRESS: Entity = ((IP, "10.1.2.3"),)
CLIENT_ENTITIES = (ALICE, ALICE_APP, ALICE_ANY, ANY_CLIENT)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_client_quotas({entity: {RATE: 1e9} for entity in CLIENT_ENTITIES})
            admin.alter_client_quotas(
                {entity: {"connection_creation_rate": 1e6} for entity in (ANY_ADDRESS, ADDRESS)}
            )
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


@pytest.mark.parametrize(
    ("parts", "strict", "expected"),
    [
        ([], False, {*CLIENT_ENTITIES, ANY_ADDRESS, ADDRESS}),
        ([], True, set()),
        ([FilterPart(USER, EXACT, "alice")], False, {ALICE, ALICE_APP, ALICE_ANY}),
        ([FilterPart(USER, EXACT, "alice")], True, {ALICE}),
        ([FilterPart(USER, EXACT, "bob")], False, set()),
        ([FilterPart(CLIENT_ID, DEFAULT)], False, {ALICE_ANY, ANY_CLIENT}),
        ([FilterPart(CLIENT_ID, SPECIFIED)], False, {ALICE_APP, ALICE_ANY, ANY_CLIENT}),
        ([FilterPart(CLIENT_ID, SPECIFIED), FilterPart(USER, SPECIFIED)], True, {ALICE_APP, ALICE_ANY}),
        ([FilterPart(IP, SPECIFIED)], True, {ANY_ADDRESS, ADDRESS}),
        ([FilterPart(IP, DEFAULT)], True, {ANY_ADDRESS}),
    ],
)
def test_filters(admin: Admin, parts: list[FilterPart], strict: bool, expected: set[Entity]) -> None:
    assert set(admin.describe_client_quotas(parts, strict=strict)) == expected


def test_quotas_are_set_changed_and_removed(admin: Admin) -> None:
    bob: Entity = ((USER, "bob"),)
    found = [FilterPart(USER, EXACT, "bob")]
    admin.alter_client_quotas({bob: {RATE: 1000, "request_percentage": 12.5}})
    assert admin.describe_client_quotas(found) == {bob: {RATE: 1000, "request_percentage": 12.5}}
    admin.alter_client_quotas({bob: {RATE: None, "consumer_byte_rate": 7}})
    assert admin.describe_client_quotas(found) == {bob: {"request_percentage": 12.5, "consumer_byte_rate": 7}}
    admin.alter_client_quotas({bob: {"request_percentage": None, "consumer_byte_rate": None}})
    assert admin.describe_client_quotas(found) == {}


def test_with_validate_only_nothing_changes(admin: Admin) -> None:
    before = admin.describe_client_quotas()
    admin.alter_client_quotas({ALICE: {RATE: 5}}, validate_only=True)
    assert admin.describe_client_quotas() == before
    with pytest.raises(AdminError, match="must be greater than 0"):
        admin.alter_client_quotas({ALICE: {RATE: -5}}, validate_only=True)


@pytest.mark.parametrize(
    ("entity", "changes", "message"),
    [
        (ALICE, {"connection_creation_rate": 1}, "Invalid configuration key connection_creation_rate"),
        (ADDRESS, {RATE: 1}, "Invalid configuration key producer_byte_rate"),
        (((IP, "10.0.0.1"), (USER, "alice")), {RATE: 1}, "combination"),
        (((IP, "not an address"),), {"connection_creation_rate": 1}, "not a valid IP"),
        (((USER, ""),), {RATE: 1}, "Empty user not supported"),
        (ALICE, {"nonsense": 1}, "Invalid configuration key nonsense"),
        (ALICE, {RATE: 0.5}, "cannot be a fractional value"),
    ],
)
def test_refusals(admin: Admin, entity: Entity, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AdminError, match=message) as caught:
        admin.alter_client_quotas({entity: changes})
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_an_entity_or_a_key_that_is_named_twice_is_refused(broker: Broker, admin: Admin) -> None:
    before = admin.describe_client_quotas()
    carol = [altering.EntityData(entity_type=USER, entity_name="carol")]
    change = altering.OpData(key=RATE, value=5.0)
    once = altering.RequestEntryData(entity=carol, ops=[change])
    twice = altering.RequestEntryData(entity=carol, ops=[change, change])
    with RawClient("127.0.0.1", broker.port) as client:
        for entries in ([once, once], [twice]):
            answer = client.call(49, 1, altering.AlterClientQuotasRequest(entries=entries))
            (result,) = answer.entries
            assert result.error_code == ErrorCode.INVALID_REQUEST
            assert "Ignoring duplicate entity" in result.error_message
    assert admin.describe_client_quotas() == before


def test_quotas_outlive_a_restart() -> None:
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_client_quotas({ALICE: {RATE: 1234}, ANY_ADDRESS: {"connection_creation_rate": 99}})
        broker.restart()
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            assert admin.describe_client_quotas() == {
                ALICE: {RATE: 1234},
                ANY_ADDRESS: {"connection_creation_rate": 99},
            }


def test_every_broker_of_a_cluster_changes_and_describes_quotas() -> None:
    with Cluster(brokers=2) as cluster:
        for number, broker_id in enumerate(cluster.brokers):
            entity: Entity = ((CLIENT_ID, f"app-{broker_id}"),)
            with RawClient("127.0.0.1", cluster.brokers[broker_id].port) as client:
                entry = altering.RequestEntryData(
                    entity=[altering.EntityData(entity_type=CLIENT_ID, entity_name=f"app-{broker_id}")],
                    ops=[altering.OpData(key=RATE, value=1000.0)],
                )
                (result,) = client.call(49, 1, altering.AlterClientQuotasRequest(entries=[entry])).entries
                assert result.error_code == ErrorCode.NONE
            # The broker that was asked knows it as soon as it has answered.
            with Admin(bootstrap_servers=cluster.bootstrap_of(broker_id)) as admin:
                quotas = admin.describe_client_quotas()
                assert quotas[entity] == {RATE: 1000}
                assert len(quotas) == number + 1
