"""Foreign clients log in over SASL_PLAINTEXT, and others do not: a broker in a process of its own."""

import asyncio
import contextlib
import os
import random
import socket
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError as AiokafkaConnectionError
from aiokafka.errors import KafkaError as AiokafkaError
from tests.clients.kafka_python_library import KafkaConsumer, KafkaError, KafkaProducer
from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.security import scram
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

# What it exports is not declared.
ADMIN: Any = confluent_kafka.admin
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "s3cret, with = and ü"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_admin="admin-secret" user_{USER}="{PASSWORD}";'
)
OVERRIDES = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(OVERRIDES, subprocess=True) as broker:
        admin = confluent_admin(broker, "admin", "admin-secret")
        changes = []
        for mechanism in (ADMIN.ScramMechanism.SCRAM_SHA_256, ADMIN.ScramMechanism.SCRAM_SHA_512):
            changes = [
                ADMIN.UserScramCredentialUpsertion(
                    USER, ADMIN.ScramCredentialInfo(mechanism, 8192), PASSWORD.encode()
                )
            ]
            for result in admin.alter_user_scram_credentials(changes).values():
                result.result(20)
        yield broker
        assert "Traceback" not in broker.output()
        assert PASSWORD not in broker.output()


def confluent_settings(
    broker: Broker | VisibleBroker, mechanism: str, user: str, password: str
) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"127.0.0.1:{broker.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def confluent_admin(broker: Broker, user: str, password: str, mechanism: str = "PLAIN") -> Any:
    return ADMIN.AdminClient(confluent_settings(broker, mechanism, user, password))


def new_topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


# ---- one record there and back, with each client


def with_confluent(broker: Broker, mechanism: str, user: str, password: str) -> bytes:
    settings = confluent_settings(broker, mechanism, user, password)
    failures: list[confluent_kafka.KafkaError] = []
    topic = new_topic()
    producer = confluent_kafka.Producer({**settings, "error_cb": failures.append, "message.timeout.ms": 4000})
    producer.produce(topic, b"confluent")
    if producer.flush(10) or any(
        failure.code() == confluent_kafka.KafkaError._AUTHENTICATION for failure in failures
    ):
        raise PermissionError(str(failures[0]))
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(20)
    consumer.close()
    assert message is not None and message.error() is None
    value = message.value()
    assert value is not None
    return value


def with_kafka_python(broker: Broker, mechanism: str, user: str, password: str) -> bytes:
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    topic = new_topic()
    try:
        producer = KafkaProducer(
            **settings, max_block_ms=4000, request_timeout_ms=3000, bootstrap_timeout_ms=3000
        )
    except KafkaError as error:
        raise PermissionError(str(error)) from error
    producer.send(topic, b"kafka-python").get(10)
    producer.close()
    consumer = KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=15000)
    value: bytes = next(consumer).value
    consumer.close()
    return value


def with_aiokafka(broker: Broker, mechanism: str, user: str, password: str) -> bytes:
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    topic = new_topic()

    async def run() -> bytes:
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
        except (AiokafkaError, AiokafkaConnectionError) as error:
            await producer.stop()
            raise PermissionError(str(error)) from error
        await producer.send_and_wait(topic, b"aiokafka")
        await producer.stop()
        consumer = AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest")
        await consumer.start()
        record = await asyncio.wait_for(consumer.getone(), 20)
        await consumer.stop()
        value: bytes = record.value
        return value

    return asyncio.run(run())


CLIENTS: dict[str, Callable[[Broker, str, str, str], bytes]] = {
    "confluent": with_confluent,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_log_in(broker: Broker, client: str, mechanism: str) -> None:
    assert CLIENTS[client](broker, mechanism, USER, PASSWORD) == client.encode()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD)])
def test_strangers_do_not(broker: Broker, client: str, mechanism: str, user: str, password: str) -> None:
    with pytest.raises(PermissionError):
        CLIENTS[client](broker, mechanism, user, password)


def test_credentials_are_described_and_deleted(broker: Broker) -> None:
    admin = confluent_admin(broker, USER, PASSWORD, "SCRAM-SHA-512")
    described = admin.describe_user_scram_credentials([USER])[USER].result(20)
    assert {(info.mechanism, info.iterations) for info in described.scram_credential_infos} == {
        (ADMIN.ScramMechanism.SCRAM_SHA_256, 8192),
        (ADMIN.ScramMechanism.SCRAM_SHA_512, 8192),
    }
    one = ADMIN.UserScramCredentialUpsertion(
        "temporary", ADMIN.ScramCredentialInfo(ADMIN.ScramMechanism.SCRAM_SHA_256, 4096), b"short life"
    )
    admin.alter_user_scram_credentials([one])["temporary"].result(20)
    assert with_kafka_python(broker, "SCRAM-SHA-256", "temporary", "short life") == b"kafka-python"
    gone = ADMIN.UserScramCredentialDeletion("temporary", ADMIN.ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([gone])["temporary"].result(20)
    with pytest.raises(PermissionError):
        with_kafka_python(broker, "SCRAM-SHA-256", "temporary", "short life")
    with pytest.raises(confluent_kafka.KafkaException) as error:
        admin.alter_user_scram_credentials([gone])["temporary"].result(20)
    assert error.value.args[0].code() == confluent_kafka.KafkaError.RESOURCE_NOT_FOUND


def test_credentials_are_kept_over_a_restart(tmp_path: Path) -> None:
    with Broker(OVERRIDES, subprocess=True, data_dir=tmp_path) as broker:
        admin = confluent_admin(broker, "admin", "admin-secret")
        one = ADMIN.UserScramCredentialUpsertion(
            "kept", ADMIN.ScramCredentialInfo(ADMIN.ScramMechanism.SCRAM_SHA_512, 4096), b"over restarts"
        )
        admin.alter_user_scram_credentials([one])["kept"].result(20)
        broker.restart()
        assert with_confluent(broker, "SCRAM-SHA-512", "kept", "over restarts") == b"confluent"


def test_a_client_authenticates_again_while_it_works(tmp_path: Path) -> None:
    """librdkafka does so when most of its session is over (KIP-368)."""
    with visible_broker(tmp_path, {**OVERRIDES, "connections.max.reauth.ms": "1500"}) as broker:
        producer = confluent_kafka.Producer(confluent_settings(broker, "PLAIN", USER, PASSWORD))
        undelivered = 0

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            nonlocal undelivered
            undelivered += error is not None

        topic, deadline = new_topic(), time.monotonic() + 60
        while broker.look(lambda broker: broker.authentication.repetitions) < 3:
            producer.produce(topic, b"again", on_delivery=delivered)
            producer.poll(0.05)
            assert time.monotonic() < deadline
        assert producer.flush(10) == 0
        assert undelivered == 0


# ---- hostile peers


def test_nothing_else_is_answered_before_authentication(broker: Broker) -> None:
    for key in range(100):
        if key in (17, 18):
            continue
        with RawClient("127.0.0.1", broker.port) as client:
            client.send_bytes(struct.pack(">ihhi", 18, key, 0, 1) + b"\xff\xff" + b"\0" * 8)
            assert client.is_closed_by_peer(5), f"API {key}"


def test_a_frame_beyond_the_limit_is_not_read(broker: Broker) -> None:
    with RawClient("127.0.0.1", broker.port) as client:
        client.send_bytes(struct.pack(">i", 524_289))
        assert client.is_closed_by_peer(5)
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(17, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        token = b"\0" + USER.encode() + b"\0" + b"x" * 520_000
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=token))
        assert answer.error_code == 58


def test_replayed_messages_of_scram(broker: Broker) -> None:
    """What a listener on the network has recorded does not open another connection."""
    mechanism = scram.ScramMechanism.SHA_256
    first = scram.ClientFirst.make(USER, scram.new_nonce())

    def challenge(client: RawClient) -> bytes:
        client.call(17, 1, SaslHandshakeRequest(mechanism=mechanism.name))
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(first)))
        data: bytes = answer.auth_bytes
        return data

    with RawClient("127.0.0.1", broker.port) as client:
        server_first = scram.ServerFirst.parse(challenge(client))
        salted = scram.salted_password(mechanism, PASSWORD, server_first.salt, server_first.iterations)
        unsigned = scram.ClientFinal.make("n,,", server_first.nonce)
        proof = scram.client_proof(mechanism, salted, scram.signed_text(first, server_first, unsigned))
        final = bytes(scram.ClientFinal.make("n,,", server_first.nonce, proof))
        assert client.call(36, 2, SaslAuthenticateRequest(auth_bytes=final)).error_code == 0
        assert client.call(3, 12, MetadataRequest(topics=None)).brokers
    with RawClient("127.0.0.1", broker.port) as client:
        challenge(client)
        assert client.call(36, 2, SaslAuthenticateRequest(auth_bytes=final)).error_code == 58
        assert client.is_closed_by_peer(5)


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_random_bytes_before_authentication() -> None:
    """No traceback, no answer that lets somebody in, and the same memory as before."""
    with Broker({**OVERRIDES, "connection.failed.authentication.delay.ms": "0"}, subprocess=True) as broker:
        chance = random.Random(1)
        for _ in range(300):
            attack(broker.port, chance)
        before = resident_bytes(broker.pid)
        for _ in range(3000):
            attack(broker.port, chance)
        assert resident_bytes(broker.pid) - before < 8 * 1024 * 1024
        assert with_confluent(broker, "PLAIN", USER, PASSWORD) == b"confluent"
        assert "Traceback" not in broker.output()
        assert broker.output().count("authentication from 127.0.0.1 failed") == 1


def attack(port: int, chance: random.Random) -> None:
    with (
        RawClient("127.0.0.1", port, timeout_seconds=5) as client,
        contextlib.suppress(ConnectionError, TimeoutError),
    ):
        if chance.random() < 0.2:
            client.send_bytes(chance.randbytes(chance.randrange(1, 200)))
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.recv(1000)
            return
        if chance.random() < 0.5:
            client.call(18, 0, ApiVersionsRequest())
        client.call(17, 1, SaslHandshakeRequest(mechanism=chance.choice(MECHANISMS)))
        for _ in range(3):
            answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=random_token(chance)))
            assert answer.error_code or answer.auth_bytes.startswith(b"r=")


def random_token(chance: random.Random) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(chance.randrange(300))
    if kind == 1:
        return b"n,,n=" + chance.choice([b"alice", b"=2C", b"", b"x" * 5000]) + b",r=abc"
    if kind == 2:
        return b"c=biws,r=abc,p=" + chance.choice([b"AAAA", b"", b"!" * 100])
    return b"\0".join(chance.choice([b"", b"alice", b"admin", b"\xff", b"x" * 2000]) for _ in range(3))
