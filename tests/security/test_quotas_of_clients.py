"""Real clients under a quota: nothing is lost, and what they reach is what the quota allows.

The brokers measure over three windows of a second, so the first two seconds may be used up at once. After
that a client cannot have used more than the quota of the time that has passed."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.clients.kafka_python_library import KafkaConsumer, KafkaProducer
from tests.security.secured_broker import SecuredBroker, secured_broker

from barnabas import Consumer, Producer
from barnabas.client.admin import Admin, NewTopic
from barnabas.security.quotas import CLIENT_ID, USER, Entity
from barnabas.testing import Broker

WINDOW_SETTINGS = {"quota.window.num": "3", "quota.window.size.seconds": "1"}
QUIET_SECONDS = 2.0
RATE = 100_000
VALUE = bytes(5_000)
# Five seconds of the quota, of which two are free.
COUNT = 100
BYTES = COUNT * len(VALUE)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(WINDOW_SETTINGS, subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1)])
    return name


def limit(bootstrap: str, entity: Entity, **quotas: float | None) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.alter_client_quotas({entity: quotas})


def confluent_producer(bootstrap: str, topic: str, client_id: str, throttles: list[float]) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "batch.size": 20_000,
            "throttle_cb": lambda event: throttles.append(event.throttle_time),
        }
    )
    for _ in range(COUNT):
        producer.produce(topic, VALUE)
        producer.poll(0)
    assert producer.flush(60) == 0


def kafka_python_producer(bootstrap: str, topic: str, client_id: str, throttles: list[float]) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
    for _ in range(COUNT):
        producer.send(topic, VALUE)
    producer.flush(60)
    producer.close()


def own_producer(bootstrap: str, topic: str, client_id: str, throttles: list[float]) -> None:
    with Producer(bootstrap_servers=bootstrap, client_id=client_id, delivery_timeout_ms=60_000) as producer:
        for _ in range(COUNT):
            producer.send(topic, VALUE)
        producer.flush(60)


def timed(work: Callable[[], Any]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def check_rate(seconds: float) -> None:
    """As fast as the quota allows: no faster, and not several times slower."""
    assert BYTES / (seconds + QUIET_SECONDS) <= 1.2 * RATE
    assert BYTES / (seconds + QUIET_SECONDS) >= RATE / 4


@pytest.mark.parametrize("produce", [confluent_producer, kafka_python_producer, own_producer])
def test_producers(
    broker: Broker, topic: str, produce: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    client_id = produce.__name__
    limit(broker.bootstrap, ((CLIENT_ID, client_id),), producer_byte_rate=RATE)
    throttles: list[float] = []
    check_rate(timed(lambda: produce(broker.bootstrap, topic, client_id, throttles)))
    if produce is confluent_producer:
        assert max(throttles) > 0
    elif produce is kafka_python_producer:
        assert "throttled by broker" in caplog.text
    with Consumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", group_id=topic
    ) as consumer:
        consumer.subscribe([topic])
        assert consumed(consumer) == COUNT
    # Without the quota the same work is done at once.
    limit(broker.bootstrap, ((CLIENT_ID, client_id),), producer_byte_rate=None)
    assert BYTES / timed(lambda: produce(broker.bootstrap, topic, client_id, [0])) > 2 * RATE


def consumed(consumer: Consumer) -> int:
    count, ends = 0, time.monotonic() + 60
    while count < COUNT and time.monotonic() < ends:
        count += len(consumer.poll(1.0))
    return count


def confluent_consumer(bootstrap: str, topic: str, client_id: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": client_id,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    values = [consumer.poll(60) for _ in range(COUNT)]
    assert all(message is not None and message.value() == VALUE for message in values)
    consumer.close()


def kafka_python_consumer(bootstrap: str, topic: str, client_id: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id=client_id,
        group_id=None,
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    for _ in range(COUNT):
        assert next(consumer).value == VALUE
    consumer.close()


def own_consumer(bootstrap: str, topic: str, client_id: str) -> None:
    with Consumer(
        bootstrap_servers=bootstrap, client_id=client_id, group_id=client_id, auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        assert consumed(consumer) == COUNT


@pytest.mark.parametrize("consume", [confluent_consumer, kafka_python_consumer, own_consumer])
def test_consumers(broker: Broker, topic: str, consume: Callable[..., None]) -> None:
    client_id = consume.__name__
    own_producer(broker.bootstrap, topic, "filler", [])
    limit(broker.bootstrap, ((CLIENT_ID, client_id),), consumer_byte_rate=RATE)
    check_rate(timed(lambda: consume(broker.bootstrap, topic, client_id)))


def test_a_throttled_client_waits_longer_than_its_request_timeout(broker: Broker, topic: str) -> None:
    """Without retries: the broker is not taken for dead while it throttles."""
    limit(broker.bootstrap, ((CLIENT_ID, "patient"),), producer_byte_rate=10_000)
    with Producer(
        bootstrap_servers=broker.bootstrap,
        client_id="patient",
        request_timeout_ms=1000,
        linger_ms=0,
        delivery_timeout_ms=60_000,
        retries=0,
        enable_idempotence=False,
    ) as producer:
        producer.send(topic, bytes(10)).result(30)
        # This much more than the quota of two seconds is throttled for more than 2 seconds.
        producer.send(topic, bytes(45_000)).result(30)
        assert timed(lambda: producer.send(topic, bytes(10)).result(30)) > 1.5
    limit(broker.bootstrap, ((CLIENT_ID, "busy"),), request_percentage=0.0001)
    with Admin(
        bootstrap_servers=broker.bootstrap, client_id="busy", request_timeout_ms=500, retries=0
    ) as admin:
        for _ in range(3):
            assert admin.describe_cluster(timeout=20).nodes


# ---- users


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured"), WINDOW_SETTINGS) as broker:
        yield broker


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_the_quota_of_a_user_holds_for_who_has_authenticated_as_that_user(
    secured: SecuredBroker, protocol: str
) -> None:
    topic = f"of-users-{protocol}"
    with Admin(secured.plain) as admin:
        admin.create_topics([NewTopic(topic, 1)])
        admin.alter_client_quotas({((USER, "alice"),): {"producer_byte_rate": RATE}})

    def send(settings: dict[str, str]) -> float:
        with Producer(settings) as producer:
            producer.send(topic, b"connected").result(30)

            def all_values() -> None:
                for _ in range(COUNT):
                    producer.send(topic, VALUE)
                producer.flush(60)

            return timed(all_values)

    check_rate(send(secured.client(protocol)))
    # ANONYMOUS has no quota.
    assert BYTES / send(secured.plain) > 2 * RATE


def test_a_tls_connection_that_waits_costs_no_handshake(tmp_path: Path) -> None:
    with secured_broker(tmp_path, {"listener.name.ssl.max.connections": "1"}) as secured:
        settings = secured.client("SSL")
        with Admin(settings) as first, Admin({**settings, "request.timeout.ms": "60000"}) as second:
            assert first.describe_cluster().nodes
            with pytest.raises(Exception, match="within"):
                second.describe_cluster(timeout=1)
            first.close()
            assert second.describe_cluster(timeout=30).nodes
