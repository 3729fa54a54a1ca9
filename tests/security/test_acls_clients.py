"""ACLs as foreign clients see them, over SASL: they create them, and they are stopped by them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aiokafka
import aiokafka.errors
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.clients import kafka_python_library as kafka
from tests.security.secured_broker import MODULES

from barnabas.config.keys_security import STANDARD_AUTHORIZER
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

PASSWORDS = {"admin": "secret-of-admin", "alice": "secret-of-alice"}


_NOTHING: Any = None
EVERY = AclBindingFilter(
    ResourceType.ANY,
    _NOTHING,
    ResourcePatternType.ANY,
    _NOTHING,
    _NOTHING,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


class UsersBroker:
    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self.bootstrap = f"127.0.0.1:{port}"

    def confluent(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
        }

    def python(self, user: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user,
            "sasl_plain_password": PASSWORDS[user],
        }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UsersBroker]:
    (port,) = free_ports(1)
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{port}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULES['PLAIN']} required {users};",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin",
    }
    with Broker(settings, subprocess=True, data_dir=tmp_path_factory.mktemp("acls")) as running:
        yield UsersBroker(running, port)
        assert "Traceback" not in running.output(), running.output()


@pytest.fixture
def admin(broker: UsersBroker) -> Iterator[AdminClient]:
    """A super user; the ACLs are gone after each test."""
    admin = AdminClient(broker.confluent("admin"))
    yield admin
    for deleted in admin.delete_acls([EVERY]).values():
        deleted.result()


@pytest.fixture
def topic(admin: AdminClient, request: pytest.FixtureRequest) -> str:
    name = f"topic-{abs(hash(request.node.name))}"
    for created in admin.create_topics([NewTopic(name, 1, 1)]).values():
        created.result()
    return name


def binding(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, allow)


def allow(admin: AdminClient, *bindings: AclBinding) -> None:
    for created in admin.create_acls(list(bindings)).values():
        created.result()


def produced_with(broker: UsersBroker, topic: str, **settings: Any) -> KafkaError | None:
    outcomes: list[KafkaError | None] = []
    producer = Producer({**broker.confluent("alice"), "message.timeout.ms": 5000, **settings})
    producer.produce(topic, b"value", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(10)
    (outcome,) = outcomes
    return outcome


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_confluent_kafka_may_write_only_with_the_right(
    broker: UsersBroker, admin: AdminClient, topic: str, is_idempotent: bool
) -> None:
    settings = {"enable.idempotence": is_idempotent}
    denied = produced_with(broker, topic, **settings)
    assert denied is not None and denied.code() in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        # Its producer gives up when it gets no id.
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._MSG_TIMED_OUT,
    )
    allow(admin, binding(ResourceType.TOPIC, topic, AclOperation.WRITE))
    assert produced_with(broker, topic, **settings) is None


def test_confluent_kafka_needs_rights_to_topic_and_group(
    broker: UsersBroker, admin: AdminClient, topic: str
) -> None:
    allow(admin, binding(ResourceType.TOPIC, topic, AclOperation.WRITE))
    assert produced_with(broker, topic) is None

    def read() -> Any:
        group = {"group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer({**broker.confluent("alice"), **group})
        consumer.subscribe([topic])
        try:
            for _ in range(20):
                message = consumer.poll(1)
                if message is not None:
                    error = message.error()
                    return message.value() if error is None else error.code()
        finally:
            consumer.close()
        return None

    assert read() == KafkaError.GROUP_AUTHORIZATION_FAILED
    allow(admin, binding(ResourceType.GROUP, "readers", AclOperation.READ))
    assert read() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(admin, binding(ResourceType.TOPIC, topic, AclOperation.READ))
    assert read() == b"value"


def test_confluent_kafka_sees_only_its_topics(broker: UsersBroker, admin: AdminClient, topic: str) -> None:
    alice = AdminClient(broker.confluent("alice"))
    assert topic not in alice.list_topics(timeout=10).topics
    allow(admin, binding(ResourceType.TOPIC, topic, AclOperation.DESCRIBE))
    assert set(alice.list_topics(timeout=10).topics) == {topic}


def test_confluent_kafka_may_not_change_acls_without_the_right(
    broker: UsersBroker, admin: AdminClient, topic: str
) -> None:
    mine = binding(ResourceType.TOPIC, topic, AclOperation.ALL)
    alice = AdminClient(broker.confluent("alice"))
    for created in alice.create_acls([mine]).values():
        with pytest.raises(KafkaException) as refused:
            created.result()
        assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert admin.describe_acls(EVERY).result() == []
    allow(admin, mine)
    assert admin.describe_acls(EVERY).result() == [mine]


def test_kafka_python(broker: UsersBroker, admin: AdminClient, topic: str) -> None:
    producer = kafka.KafkaProducer(**broker.python("alice"), max_block_ms=5000)
    with pytest.raises(
        (kafka.errors.TopicAuthorizationFailedError, kafka.errors.ClusterAuthorizationFailedError)
    ):
        producer.send(topic, b"v").get(10)
    producer.close(timeout=1)
    allow(admin, binding(ResourceType.TOPIC, topic, AclOperation.WRITE))
    producer = kafka.KafkaProducer(**broker.python("alice"))
    assert producer.send(topic, b"v").get(10).offset == 0
    producer.close()


def test_aiokafka(broker: UsersBroker, admin: AdminClient, topic: str) -> None:
    async def send() -> int:
        producer = aiokafka.AIOKafkaProducer(**broker.python("alice"))
        await producer.start()
        try:
            return int((await producer.send_and_wait(topic, b"v")).offset)
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        asyncio.run(send())
    allow(admin, binding(ResourceType.TOPIC, topic, AclOperation.WRITE))
    assert asyncio.run(send()) == 0


def test_the_audit_log_is_in_the_brokers_output(broker: UsersBroker, admin: AdminClient, topic: str) -> None:
    produced_with(broker, topic)
    assert "Principal = User:alice is Denied operation = " in broker.broker.output()
    for password in PASSWORDS.values():
        assert password not in broker.broker.output()
