"""APIs that are answered without security and with one broker: the same bytes as a running Kafka."""

from pathlib import Path

import pytest
from tests.java.kafka_server import running_kafka
from tests.java.record_answers import answers_of_kafka
from tests.support.raw_client import RawClient
from tests.support.unsecured_calls import BROKER_ID, answers_of, prepare, recorded_answers

from barnabas.testing import Broker

pytestmark = pytest.mark.java


def test_kafka_and_our_broker_answer_the_same_bytes(jars: str, tmp_path: Path) -> None:
    with running_kafka(tmp_path / "kafka") as kafka:
        theirs = answers_of_kafka(kafka)
    with Broker({"node.id": str(BROKER_ID)}) as broker, RawClient("127.0.0.1", broker.port) as client:
        prepare(client)
        ours = answers_of(client, str(broker.data_dir.absolute()))
    different = {ident: (ours[ident], theirs[ident]) for ident in theirs if ours[ident] != theirs[ident]}
    assert different == {}
    # `make test` compares with recorded answers: they must be those of this Kafka.
    assert recorded_answers() == theirs
