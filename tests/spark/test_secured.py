"""The source and the sink on a broker that wants TLS and a password; no secret in plans, progress or
errors."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.security.secured_broker import PASSWORD, SecuredBroker, secured_broker

from barnabas import Admin, Producer
from barnabas.client.admin import Acl, NewTopic, Operation, PatternType, Permission, ResourceType
from barnabas.spark.options import OptionError
from barnabas.spark.pipeline.loading import load
from barnabas.spark.settings import read_settings
from barnabas.spark.sink.settings import write_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Alice has the rights of the ACLs below. The listener without protection is for the tests themselves.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def allow(kind: ResourceType, name: str, operation: Operation) -> Acl:
    return Acl(kind, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW)


# What docs/security.md says that queries need, and nothing else.
RIGHTS = [
    allow(ResourceType.TOPIC, "numbers", Operation.READ),
    allow(ResourceType.GROUP, "watched", Operation.READ),
    allow(ResourceType.TOPIC, "copies", Operation.WRITE),
    allow(ResourceType.TOPIC, "copies", Operation.READ),
    allow(ResourceType.TRANSACTIONAL_ID, "copier", Operation.WRITE),
    allow(ResourceType.GROUP, "copier", Operation.READ),
]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured"), AUTHORIZER) as running:
        with Admin(running.plain) as admin:
            admin.create_topics([NewTopic("numbers", 1), NewTopic("copies", 1), NewTopic("secrets", 1)])
            admin.create_acls(RIGHTS)
        with Producer(running.plain) as producer:
            for number in range(100):
                producer.send("numbers", str(number).encode())
            producer.flush()
        yield running


def options_of(secured: SecuredBroker, **more: str) -> dict[str, str]:
    """As for Spark's own Kafka connector. The certificates travel with the query, so executors need no
    file."""
    client = secured.client("SASL_SSL")
    certificates = Path(client.pop("ssl.truststore.location")).read_text()
    client["ssl.truststore.certificates"] = certificates
    return {f"kafka.{name}": value for name, value in client.items()} | more


def plans(frame: "DataFrame", capsys: pytest.CaptureFixture[str]) -> str:
    frame.explain(True)
    frame.explain("formatted")
    return capsys.readouterr().out


def test_batches_and_streams(
    spark: "SparkSession",
    secured: SecuredBroker,
    checkpoint: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = options_of(secured)
    numbers = spark.read.format("barnabas").options(**options, subscribe="numbers").load()
    assert numbers.count() == 100
    assert PASSWORD not in plans(numbers, capsys)
    numbers.select("value").write.format("barnabas").mode("append").options(**options, topic="copies").save()

    reading = {**options, "subscribe": "numbers", "startingOffsets": "earliest", "commitOffsets": "watched"}
    stream = spark.readStream.format("barnabas").options(**reading).load()
    exact = {"delivery": "exactly-once", "transactional.id": "copier", "topic": "copies"}
    query = (
        stream.select("value")
        .writeStream.format("barnabas")
        .options(**options, **exact, checkpointLocation=checkpoint())
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    query.explain(True)
    assert PASSWORD not in capsys.readouterr().out
    assert PASSWORD not in json.dumps([dict(each) for each in query.recentProgress], default=str)
    copies = spark.read.format("barnabas").options(**options, subscribe="copies").load()
    assert copies.count() == 200


def test_a_topic_without_rights_is_refused(spark: "SparkSession", secured: SecuredBroker) -> None:
    frame = spark.read.format("barnabas").options(**options_of(secured), subscribe="secrets").load()
    with pytest.raises(Exception, match="this user may not read secrets"):
        frame.count()


def test_a_refusal_reaches_the_user_without_the_password(
    spark: "SparkSession", secured: SecuredBroker
) -> None:
    options = options_of(secured, subscribe="numbers")
    name = "kafka.sasl.jaas.config"
    options[name] = options[name].replace(PASSWORD, "wr0ng-one")
    with pytest.raises(Exception, match="refused the authentication with PLAIN") as caught:
        spark.read.format("barnabas").options(**options).load().count()
    assert "wr0ng-one" not in str(caught.value)


def test_no_secret_is_in_the_repr_of_settings(secured: SecuredBroker) -> None:
    options = options_of(secured)
    for settings in (
        read_settings({**options, "subscribe": "numbers"}, is_stream=False),
        write_settings({**options, "topic": "copies"}, is_stream=False),
    ):
        assert PASSWORD not in repr(settings)


def test_a_wrong_option_is_one_sentence(secured: SecuredBroker) -> None:
    options = options_of(secured, subscribe="numbers")
    del options["kafka.sasl.jaas.config"]
    with pytest.raises(OptionError, match=r"A kafka\.\* option is wrong: .* needs a username"):
        read_settings(options, is_stream=False)


def test_the_file_of_a_pipeline_takes_secrets_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ORDERS_PASSWORD", "p4ssw0rd")
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE)
    pipeline: Any = load(file)
    assert pipeline.client["sasl.password"] == "p4ssw0rd"
    assert "p4ssw0rd" not in repr(pipeline)


PIPELINE = """\
name: orders
bootstrap: localhost:9092
client:
  security.protocol: SASL_SSL
  sasl.mechanism: SCRAM-SHA-512
  sasl.username: pipeline
  sasl.password: ${ORDERS_PASSWORD}
checkpoint: ./state
trigger: available-now
sources:
  orders: {topic: orders, start: earliest}
sinks:
  - {from: orders, topic: copies}
"""
