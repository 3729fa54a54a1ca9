"""Our clients and a broker of its own process, over each protocol that the broker serves."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.secured_broker import PROTOCOLS, SecuredBroker, secured_broker
from tests.support.certificates import Authority
from tests.support.logins import logins_by_connection

from barnabas import Admin, AsyncConsumer, AsyncProducer, Consumer, Producer, TopicPartition
from barnabas.client.admin import NewTopic
from barnabas.client.errors import AuthenticationError, KafkaError

# As in Kafka, a client must not authenticate again within a second, and it does so a little before the end.
SESSION_MS = 2000


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    # Sessions are short, so that every client authenticates again while it works.
    limits = {"connections.max.reauth.ms": str(SESSION_MS)}
    with secured_broker(tmp_path_factory.mktemp("secured"), limits) as running:
        yield running


def consume(settings: dict[str, str], topic: str, count: int) -> list[bytes]:
    values: list[bytes] = []
    with Consumer({**settings, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        while len(values) < count and time.monotonic() < deadline:
            values += [record.value for record in consumer.poll(1.0)]
        consumer.commit_sync()
    return values


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_producer_consumer_and_admin(secured: SecuredBroker, protocol: str) -> None:
    settings = secured.client(protocol)
    topic = f"all-of-{protocol}"
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(topic, partitions=3)])
        with Producer({**settings, "transactional.id": topic}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(1000):
                producer.send(topic, str(number).encode(), key=str(number).encode())
            producer.commit_transaction()
        assert sorted(map(int, consume(settings, topic, 1000))) == list(range(1000))
        # The offset of a transaction marker counts until something follows it.
        assert set(admin.lag_of(f"of-{topic}").values()) <= {0, 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_large_records(secured: SecuredBroker, protocol: str) -> None:
    settings = secured.client(protocol)
    values = [bytes([number]) * 900_000 for number in range(20)]
    with Producer(settings) as producer:
        for value in values:
            producer.send(f"large-{protocol}", value)
        producer.flush()
    assert consume(settings, f"large-{protocol}", len(values)) == values


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_asyncio_forms(secured: SecuredBroker, protocol: str) -> None:
    settings = secured.client(protocol)
    topic = f"asyncio-{protocol}"

    async def story() -> None:
        async with AsyncProducer(settings) as producer:
            await asyncio.gather(*[await producer.send(topic, b"v") for _ in range(100)])
        async with AsyncConsumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            count = 0
            async with asyncio.timeout(30):
                while count < 100:
                    count += len(await consumer.poll(1.0))

    asyncio.run(story())


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name.startswith("SASL_")])
def test_work_goes_on_over_the_ends_of_sessions(
    secured: SecuredBroker, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker ends a session after two seconds. A producer and a consumer log in again on their open
    connections, three times, and nothing is lost or repeated."""
    logins = logins_by_connection(monkeypatch)
    settings = secured.client(protocol)
    topic = f"sessions-{protocol}"
    sent = 0
    with (
        Producer(settings) as producer,
        Consumer(
            {**settings, "group.id": topic, "auto.offset.reset": "earliest", "heartbeat.interval.ms": "100"}
        ) as consumer,
    ):
        consumer.subscribe([topic])
        received: list[bytes] = []
        deadline = time.monotonic() + 120
        futures = []
        while sum(count > 3 for count in logins.values()) < 2 and time.monotonic() < deadline:
            futures.append(producer.send(topic, str(sent).encode()))
            sent += 1
            received += [record.value for record in consumer.poll(0.001)]
        assert sum(count > 3 for count in logins.values()) >= 2
        producer.flush()
        assert [future.exception(10) for future in futures] == [None] * sent
        while len(received) < sent and time.monotonic() < deadline:
            received += [record.value for record in consumer.poll(1.0)]
        assert received == [str(number).encode() for number in range(sent)]


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name.startswith("SASL_")])
def test_a_wrong_password_is_an_error_at_once(secured: SecuredBroker, protocol: str) -> None:
    """The limits of the clients are longer than a test may take: it ends only if a refusal ends a call."""
    settings = secured.client(protocol, password="wrong-password")
    limit_ms = 3_600_000
    with (
        Admin(settings, default_api_timeout_ms=limit_ms) as admin,
        pytest.raises(AuthenticationError, match="Invalid username or password"),
    ):
        admin.list_topics()
    with (
        Producer(settings, max_block_ms=limit_ms, delivery_timeout_ms=limit_ms) as producer,
        pytest.raises(AuthenticationError) as caught,
    ):
        producer.send("t", b"v")
    assert "wrong-password" not in str(caught.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_without_protection_gets_a_hint(secured: SecuredBroker, protocol: str) -> None:
    settings = {"bootstrap.servers": secured.client(protocol)["bootstrap.servers"]}
    with Admin(settings, default_api_timeout_ms=2000) as admin, pytest.raises(KafkaError) as caught:
        admin.list_topics()
    assert "security.protocol" in str(caught.value) or "SASL" in str(caught.value)


def test_sasl_to_a_listener_without_it(secured: SecuredBroker) -> None:
    settings = {**secured.client("SASL_PLAINTEXT"), **secured.plain}
    with Admin(settings) as admin, pytest.raises(AuthenticationError, match=r"check .*security\.protocol"):
        admin.list_topics()


def test_a_broker_of_another_authority_is_not_trusted(secured: SecuredBroker, tmp_path: Path) -> None:
    settings = {
        **secured.client("SASL_SSL"),
        "ssl.truststore.location": Authority().write_pem(tmp_path / "ca"),
    }
    with Admin(settings) as admin, pytest.raises(AuthenticationError, match="does not trust the certificate"):
        admin.list_topics()


def test_tls_to_a_listener_without_it(secured: SecuredBroker) -> None:
    settings = {**secured.client("SSL"), **secured.plain}
    with Admin(settings, default_api_timeout_ms=2000) as admin, pytest.raises(KafkaError) as caught:
        admin.list_topics()
    assert "instead of a TLS handshake; check security.protocol" in str(caught.value)
