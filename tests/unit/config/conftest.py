"""Shared by the config tests: a file as Kafka ships it."""

import pytest

KRAFT_FILE = """\
# A combined node, as Kafka's own server.properties has it.
process.roles=broker,controller
node.id=7
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
log.retention.hours=168
log.segment.bytes=1073741824
"""


@pytest.fixture
def kraft_file() -> str:
    return KRAFT_FILE
