"""Foreign clients log in with OAUTHBEARER; tokens that do not count are refused."""

import asyncio
import importlib
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import jwt
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AiokafkaError
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.clients.kafka_python_library import KafkaConsumer, KafkaError, KafkaProducer
from tests.support.raw_client import RawClient

from barnabas.testing import Broker
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

KEY = rsa.generate_private_key(65537, 2048)
STRANGER = rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    path = tmp_path_factory.mktemp("provider") / "keys.json"
    entry = jwt.get_algorithm_by_name("RS256").to_jwk(KEY.public_key(), as_dict=True)
    path.write_text(json.dumps({"keys": [{**entry, "kid": "one"}]}))
    overrides = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
        "sasl.oauthbearer.expected.audience": "events",
        "sasl.oauthbearer.expected.issuer": "https://provider",
    }
    with Broker(overrides, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


def token(key: rsa.RSAPrivateKey = KEY, **changes: Any) -> str:
    claims = {"sub": "alice", "iss": "https://provider", "aud": "events", "exp": int(time.time()) + 300}
    return jwt.encode({**claims, **changes}, key, "RS256", headers={"kid": "one"})


BAD = {
    "another key": lambda: token(STRANGER),
    "another audience": lambda: token(aud="other"),
    "expired": lambda: token(exp=int(time.time()) - 100),
}


def new_topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


def with_confluent(broker: Broker, text: str) -> bytes:
    failures: list[confluent_kafka.KafkaError] = []
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda config: (text, time.time() + 300),
        "error_cb": failures.append,
    }
    topic = new_topic()
    producer = confluent_kafka.Producer({**settings, "message.timeout.ms": 4000})
    producer.produce(topic, b"confluent")
    producer.flush(10)
    if any(failure.code() == confluent_kafka.KafkaError._AUTHENTICATION for failure in failures):
        raise PermissionError(str(failures[0]))
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(20)
    consumer.close()
    assert message is not None and message.error() is None
    value = message.value()
    assert value is not None
    return value


def with_aiokafka(broker: Broker, text: str) -> bytes:
    async def answer(provider: Any) -> str:
        return text

    async def run() -> bytes:
        settings = {
            "bootstrap_servers": broker.bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": type("Fixed", (AbstractTokenProvider,), {"token": answer})(),
        }
        topic = new_topic()
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
        except AiokafkaError as error:
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


def with_kafka_python(broker: Broker, text: str) -> bytes:
    provider: Any = importlib.import_module("kafka.net.sasl.oauth").AbstractTokenProvider
    fixed = type("Fixed", (provider,), {"token": lambda self: text})
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": fixed(),
    }
    topic = new_topic()
    try:
        producer = KafkaProducer(**settings, max_block_ms=4000, bootstrap_timeout_ms=3000)
    except KafkaError as error:
        raise PermissionError(str(error)) from error
    producer.send(topic, b"kafka-python").get(10)
    producer.close()
    consumer = KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=15000)
    value: bytes = next(consumer).value
    consumer.close()
    return value


CLIENTS = {"confluent": with_confluent, "aiokafka": with_aiokafka, "kafka-python": with_kafka_python}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_log_in(broker: Broker, client: str) -> None:
    assert CLIENTS[client](broker, token()) == client.encode()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("what", BAD)
def test_bad_tokens_are_refused(broker: Broker, client: str, what: str) -> None:
    with pytest.raises(PermissionError):
        CLIENTS[client](broker, BAD[what]())


def test_the_session_ends_with_the_token(broker: Broker) -> None:
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(17, 1, SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        message = f"n,,\x01auth=Bearer {token(exp=int(time.time()) + 100)}\x01\x01"
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=message.encode()))
        assert answer.error_code == 0
        assert 90_000 < answer.session_lifetime_ms <= 100_000


def test_a_refused_token_is_explained_before_the_failure(broker: Broker) -> None:
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(17, 1, SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        message = f"n,,\x01auth=Bearer {token(STRANGER)}\x01\x01"
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=message.encode()))
        assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=b"\x01"))
        assert (answer.error_code, answer.error_message) == (58, '{"status":"invalid_token"}')
        assert client.is_closed_by_peer(5)


def test_without_keys_a_broker_does_not_start(tmp_path: Path) -> None:
    overrides = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
    }
    with pytest.raises(RuntimeError, match="nothing can verify its tokens"):
        Broker(overrides, subprocess=True).start()
    missing = {"sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "missing.json").as_uri()}
    with pytest.raises(RuntimeError, match="Cannot read keys"):
        Broker({**overrides, **missing}, subprocess=True).start()
