"""Reads whole topics with each of the libraries, by assignment."""

import re
from collections.abc import Callable, Collection

from tests.clients.aiokafka_client import AiokafkaClient
from tests.clients.client import Client, Reading
from tests.clients.confluent_client import ConfluentClient
from tests.clients.kafka_python_client import KafkaPythonClient

import barnabas

READERS: dict[str, Callable[[str], Client]] = {
    each.name: each for each in (ConfluentClient, KafkaPythonClient, AiokafkaClient)
}


def end_of(bootstrap: str, topic: str, partition: int) -> int:
    with barnabas.Consumer(bootstrap_servers=bootstrap) as consumer:
        place = barnabas.TopicPartition(topic, partition)
        return consumer.end_offsets([place])[place]


def values_of(library: str, bootstrap: str, topic: str, partition: int) -> list[bytes]:
    """All values of a partition, in their order."""
    count = end_of(bootstrap, topic, partition)
    if library == "barnabas":
        return _own_values(bootstrap, topic, partition, count)
    messages = READERS[library](bootstrap).read(
        topic, count, partition=partition, reading=Reading(timeout_s=60.0, reset="earliest")
    )
    return [message.value or b"" for message in messages]


def _own_values(bootstrap: str, topic: str, partition: int, count: int) -> list[bytes]:
    values: list[bytes] = []
    with barnabas.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([barnabas.TopicPartition(topic, partition)])
        while len(values) < count and (records := consumer.poll(20.0)):
            values += [record.value or b"" for record in records]
    return values


def check_written(values: list[bytes], acknowledged: Collection[bytes]) -> None:
    """All acknowledged records are there, none twice, and those of each writer are in the order of their
    numbers."""
    missing = set(acknowledged) - set(values)
    assert not missing, f"{len(missing)} acknowledged records are lost, for example {sorted(missing)[:5]}"
    assert len(set(values)) == len(values), "a record of an idempotent producer is there twice"


def check_order(values: list[bytes]) -> None:
    last: dict[bytes, int] = {}
    for value in values:
        matched = re.fullmatch(rb"(\S+) (\d+)", value)
        assert matched is not None, value
        writer, number = matched[1], int(matched[2])
        assert number > last.get(writer, -1), f"{value!r} comes after number {last[writer]}"
        last[writer] = number
