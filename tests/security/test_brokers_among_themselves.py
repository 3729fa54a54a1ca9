"""A cluster whose brokers show each other who they are: replication, forwarding and failover still work."""

from collections.abc import Mapping

import pytest
from tests.security.secured_broker import MODULES, PASSWORD

from barnabas import Consumer, Producer
from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster

SASL = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": (f'{MODULES["PLAIN"]} required user_alice="{PASSWORD}";'),
    "listener.name.brokers.plain.sasl.jaas.config": (
        f'{MODULES["PLAIN"]} required username="broker" password="b-secret" user_broker="b-secret";'
    ),
    # Short sessions: brokers authenticate again while they replicate. As in Kafka, not within a second.
    "connections.max.reauth.ms": "2000",
}
ALICE = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": PASSWORD,
}


@pytest.mark.parametrize(("overrides", "client"), [(SASL, ALICE)], ids=["SASL_PLAINTEXT"])
def test_replication_forwarding_and_failover(overrides: Mapping[str, str], client: Mapping[str, str]) -> None:
    with Cluster(3, overrides) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 3, 3)])
        cluster.wait_until_in_sync("orders")
        settings = {"bootstrap.servers": cluster.bootstrap, **client}
        with Producer(settings) as producer:
            for number in range(300):
                producer.send("orders", str(number).encode(), key=str(number).encode())
                if number == 100:
                    producer.flush()
                    cluster.kill(cluster.leader_of(("orders", 0)))
            producer.flush()
        values: set[bytes] = set()
        reading = {"group.id": "g", "auto.offset.reset": "earliest"}
        with Consumer({**settings, **reading}) as consumer:
            consumer.subscribe(["orders"])
            cluster.wait_until(
                lambda: values.update(record.value for record in consumer.poll(0.5)) or len(values) == 300,
                "all records",
            )
        for name, output in cluster.outputs().items():
            assert "Traceback" not in output and "secret" not in output, f"{name}: {output}"
            assert "cannot authenticate again" not in output, f"{name}: {output}"
