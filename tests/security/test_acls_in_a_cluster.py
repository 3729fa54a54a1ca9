"""ACLs of a cluster: any broker takes them, all brokers enforce them, and a new controller knows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.security.secured_broker import MODULES

from barnabas import Admin, Producer
from barnabas.client.admin import AdminError, NewTopic
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from barnabas.testing import Cluster

USERS = 'user_admin="a-secret" user_alice="c-secret"'
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": f"{MODULES['PLAIN']} required {USERS};",
    "listener.name.brokers.plain.sasl.jaas.config": (
        f'{MODULES["PLAIN"]} required username="broker" password="b-secret" user_broker="b-secret";'
    ),
    "authorizer.class.name": STANDARD_AUTHORIZER,
    # The test's own connections without a password are anonymous.
    "super.users": "User:admin;User:broker;User:ANONYMOUS",
}


def user(name: str, bootstrap: str) -> dict[str, str]:
    password = {"admin": "a-secret", "alice": "c-secret"}[name]
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": password,
    }


def of_alice(operation: Operation, name: str) -> Acl:
    literal = PatternType.LITERAL
    return Acl(ResourceType.TOPIC, name, literal, "User:alice", "*", operation, Permission.ALLOW)


def is_denied(work: Callable[[], object]) -> bool:
    try:
        work()
    except AdminError as error:
        return all(_is_denial(each) for each in error.errors.values())
    except KafkaError as error:
        return _is_denial(error)
    return False


def _is_denial(error: BaseException) -> bool:
    return isinstance(error, KafkaError) and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.timeout(180)
def test_every_broker_takes_and_enforces_acls(tmp_path: Path) -> None:
    with Cluster(3, SETTINGS) as cluster, cluster.admin() as root:
        brokers = cluster.bootstrap.split(",")
        root.create_topics([NewTopic("orders", 3, 3)])
        cluster.wait_until_in_sync("orders")
        # Whichever broker is asked: those that are not the controller forward alice's name.
        for place, bootstrap in enumerate(brokers):
            name = f"mine-{place}"
            with Admin(user("alice", bootstrap)) as alice, Admin(user("admin", bootstrap)) as admin:
                create = partial(alice.create_topics, [NewTopic(name, 1, 1)])
                assert is_denied(create)
                admin.create_acls([of_alice(Operation.CREATE, name), of_alice(Operation.DESCRIBE, name)])
                assert not is_denied(create)
        write = of_alice(Operation.WRITE, "orders")
        with Admin(user("admin", brokers[1])) as admin:
            admin.create_acls([write])

        def send() -> None:
            with Producer(
                {
                    **user("alice", cluster.bootstrap),
                    "request.timeout.ms": 10_000,
                    "delivery.timeout.ms": 20_000,
                }
            ) as producer:
                sent = [producer.send("orders", b"v", partition=partition) for partition in range(3)]
                producer.flush()
                for each in sent:
                    each.result(10)

        cluster.wait_until(lambda: not is_denied(send), "alice may write to every leader")
        cluster.kill(cluster.controller())
        send()
        with Admin(user("admin", cluster.bootstrap)) as admin:
            assert write in admin.describe_acls()
            admin.delete_acls([AclFilter(principal="User:alice")])
        cluster.wait_until(lambda: is_denied(send), "alice has lost her right")
