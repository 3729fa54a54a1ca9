"""Names of kafka-python, aiokafka and confluent-kafka get a hint instead of an error of Python."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

import barnabas
from barnabas import AsyncProducer, ConfigError, Consumer, ConsumerRecords, NewTopic, Producer
from barnabas.client import habits
from barnabas.client.config import consumer_config, producer_config
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def producer(barnabas_broker: Broker) -> Any:
    with Producer(bootstrap_servers=barnabas_broker.bootstrap) as producer:
        yield producer


@pytest.fixture(scope="module")
def consumer(barnabas_broker: Broker) -> Any:
    with Consumer(bootstrap_servers=barnabas_broker.bootstrap, group_id="habits") as consumer:
        yield consumer


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda producer: producer.produce("t", b"x"), "Producer has no produce(): use send(topic, value="),
        (lambda producer: producer.poll(0), "Producer has no poll(): leave it out"),
        (lambda producer: producer.send("t", b"x").get(timeout=10), "has no get(): use result(timeout)"),
        (lambda producer: producer.send("t", b"x").add_errback(print), "use add_callback(function)"),
        (lambda producer: producer.send("t", b"x", timestamp_ms=5), "use timestamp=..., in milliseconds"),
        (lambda producer: producer.send("t", b"x", callback=print), "use on_delivery=function"),
        (lambda producer: producer.send("t", b"x", colour=1), "send() has no argument 'colour'"),
        (lambda producer: producer.send("t", "text"), "a value must be bytes or None, not str"),
        (lambda producer: producer.send("t", b"x", key=5), "a key must be bytes or None, not int"),
        (
            lambda producer: producer.send("t", b"x", headers={"a": "b"}),
            "a value that is bytes, not str and str",
        ),
        (lambda producer: producer.send("t", b"x", headers=["a"]), "a dict or pairs of a name and bytes"),
        (lambda producer: producer.colour, "'Producer' object has no attribute 'colour'"),
    ],
)
def test_habits_with_a_producer(producer: Producer, call: Callable[[Any], object], hint: str) -> None:
    for _ in range(2):  # the first record of a batch and the others take different ways
        with pytest.raises((AttributeError, TypeError), match=re.escape(hint)):
            call(producer)
        producer.send("t", b"x")


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda consumer: consumer.poll(timeout_ms=1000), "use poll(1.0): the timeout is in seconds"),
        (lambda consumer: consumer.poll(1.0, max_records=5), "set max_poll_records when the consumer"),
        (lambda consumer: consumer.commit(), "Consumer has no commit(): use commit_sync()"),
        (lambda consumer: consumer.consume(10, 1.0), "use poll(timeout), which returns up to"),
        (lambda consumer: consumer.subscribe("t"), "a list of topics or a compiled pattern, not a string"),
        (lambda consumer: consumer.subscribe(pattern="t.*"), 'use subscribe(re.compile("..."))'),
        (lambda consumer: consumer.subscribe(["t"], on_assign=print), "with a RebalanceListener"),
        (lambda consumer: consumer.pause([("t", 0)]), "give partitions one by one, as in pause(*partitions)"),
    ],
)
def test_habits_with_a_consumer(consumer: Any, call: Callable[[Any], object], hint: str) -> None:
    with pytest.raises((AttributeError, TypeError), match=re.escape(hint)):
        call(consumer)


def test_one_poll_returns_many_records() -> None:
    polled: Any = ConsumerRecords()
    for name in ("error", "value", "items"):
        with pytest.raises(AttributeError, match=rf"has no {name}\(\): poll\(\) returns many records"):
            getattr(polled, name)()
    assert not hasattr(polled, "error")


@pytest.mark.parametrize("arguments", [("orders",), ("orders", "payments"), (["orders"],)])
def test_positional_topics(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"Consumer\(\) takes settings only.*subscribe\(\['orders'\]\)"):
        Consumer(*arguments, bootstrap_servers="127.0.0.1:1")


@pytest.mark.parametrize("kind", ["Admin", "Producer"])
def test_positional_addresses(kind: str) -> None:
    with pytest.raises(TypeError, match=rf"{kind}\(\) takes settings only.*use {kind}\(bootstrap_servers="):
        getattr(barnabas, kind)("127.0.0.1:9092")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KafkaProducer", "use barnabas.Producer"),
        ("KafkaConsumer", "use barnabas.Consumer"),
        ("AIOKafkaProducer", "use barnabas.AsyncProducer"),
        ("AdminClient", "use barnabas.Admin"),
        ("SerializingProducer", "use barnabas.Producer, with key_serializer and value_serializer"),
    ],
)
def test_names_of_others_at_the_root(name: str, hint: str) -> None:
    sentence = f"barnabas has no {name}: {hint}"
    with pytest.raises(AttributeError) as caught:
        getattr(barnabas, name)
    assert str(caught.value) == sentence
    with pytest.raises(ImportError) as refused:
        exec(f"from barnabas import {name}")
    assert str(refused.value) == sentence


def test_names_of_nobody_at_the_root() -> None:
    for name in ("Nothing", "nothing"):
        with pytest.raises(AttributeError, match=f"module 'barnabas' has no attribute '{name}'"):
            getattr(barnabas, name)
        with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
            exec(f"from barnabas import {name}")


def test_hints_at_the_root_are_about_names_that_do_not_exist() -> None:
    assert [name for name in habits.NAMES if name in barnabas.__all__] == []
    for hint in habits.NAMES.values():
        for used in re.findall(r"barnabas\.(\w+)", hint):
            assert used in barnabas.__all__, hint


def test_topics_of_others() -> None:
    make: Any = NewTopic
    with pytest.raises(TypeError, match=r"NewTopic\(\) has no argument 'num_partitions': use partitions=3"):
        make("t", num_partitions=3, replication_factor=1)
    assert NewTopic("t", 3)._replace(name="u") == NewTopic(name="u", partitions=3)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"ssl_cafile": "ca.pem"}, "ssl_cafile is not a setting of this client: use ssl_ca_location."),
        (
            {"sasl_plain_username": "a"},
            "sasl_plain_username is not a setting of this client: use sasl_username.",
        ),
        ({"consumer_timeout_ms": 5}, "poll(timeout) returns nothing when the time is over"),
        ({"group_ip": "g"}, "did you mean group_id?"),
    ],
)
def test_settings_of_kafka_python(keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        consumer_config(bootstrap_servers="h:1", **keywords)


def test_settings_of_librdkafka() -> None:
    settings = {"bootstrap.servers": "h:1", "queue.buffering.max.ms": 5}
    sentence = "queue.buffering.max.ms is not a setting of this client: use linger.ms."
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        producer_config(settings)
    with pytest.raises(ConfigError, match=re.escape("did you mean group.id?")):
        consumer_config({"bootstrap.servers": "h:1", "group_id": "g"})


def test_subclasses_and_asyncio_forms_give_the_hints_too(barnabas_broker: Broker) -> None:
    class Till(Producer):
        pass

    with Till(bootstrap_servers=barnabas_broker.bootstrap) as till:
        named: Any = till
        with pytest.raises(AttributeError, match=r"Till has no produce\(\): use send"):
            named.produce("t", b"x")

    async def run() -> None:
        async with AsyncProducer(bootstrap_servers=barnabas_broker.bootstrap) as producer:
            named: Any = producer
            with pytest.raises(AttributeError, match=r"AsyncProducer has no start\(\): leave it out"):
                await named.start()
            for _ in range(2):
                with pytest.raises(TypeError, match="a value must be bytes or None, not str"):
                    await producer.send("t", "text")
                await producer.send("t", b"x")

    asyncio.run(run())


@pytest.mark.parametrize("kind", sorted(habits.METHODS))
def test_hints_are_about_names_that_do_not_exist(kind: str) -> None:
    hinted = getattr(barnabas, kind)
    assert [name for name in habits.METHODS[kind] if hasattr(hinted, name)] == []
    for hint in habits.METHODS[kind].values():
        if used := re.match(r"use (\w+)\(", hint):
            assert hasattr(hinted, used[1]), hint


def test_settings_that_hints_name_exist() -> None:
    known = {
        **producer_config(bootstrap_servers="h:1")._values,
        **consumer_config(bootstrap_servers="h:1")._values,
    }
    assert [name for name in habits.SETTINGS if name in known] == []
    named = {name for hint in habits.SETTINGS.values() for name in re.findall(r"[a-z]+(?:\.[a-z]+)+", hint)}
    assert sorted(named - set(known)) == []
