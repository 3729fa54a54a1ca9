"""Hints for those who know kafka-python, aiokafka or confluent-kafka: the error for a name of theirs says
what to use instead. Type checkers see none of this; for them the names do not exist."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

_NO_POLL = "leave it out: a thread of the producer reports deliveries"
_WITH = "leave it out: the client starts when it is created; use `with`, or close() at the end"
_MANY = "poll() returns many records: for record in consumer.poll(1.0): print(record.key, record.value)"

# At the root of the package.
NAMES: Mapping[str, str] = {
    "ACL": "use barnabas.Acl",
    "ACLFilter": "use barnabas.AclFilter",
    "AIOConsumer": "use barnabas.AsyncConsumer",
    "AIOKafkaConsumer": "use barnabas.AsyncConsumer",
    "AIOKafkaProducer": "use barnabas.AsyncProducer",
    "AIOProducer": "use barnabas.AsyncProducer",
    "AclBinding": "use barnabas.Acl",
    "AclBindingFilter": "use barnabas.AclFilter",
    "AdminClient": "use barnabas.Admin",
    "ConsumerRebalanceListener": "use barnabas.RebalanceListener",
    "DeserializingConsumer": "use barnabas.Consumer, with key_deserializer and value_deserializer",
    "KafkaAdminClient": "use barnabas.Admin",
    "KafkaConsumer": "use barnabas.Consumer",
    "KafkaException": "use barnabas.KafkaError",
    "KafkaProducer": "use barnabas.Producer",
    "Message": "use barnabas.ConsumerRecord, whose key, value and offset are attributes",
    "OFFSET_BEGINNING": "use seek_to_beginning() of a barnabas.Consumer",
    "OFFSET_END": "use seek_to_end() of a barnabas.Consumer",
    "SerializingProducer": "use barnabas.Producer, with key_serializer and value_serializer",
}

METHODS: Mapping[str, Mapping[str, str]] = {
    "Admin": {
        "alter_group_offsets": "use alter_consumer_group_offsets(group, offsets)",
        "delete_groups": "use delete_consumer_groups([group])",
        "describe_groups": "use describe_consumer_groups([group])",
        "list_group_offsets": "use list_consumer_group_offsets(group)",
        "poll": "leave it out: every method waits for its results",
        "start": _WITH,
    },
    "BatchFuture": {"get": "use result(timeout)"},
    "Consumer": {
        "commit": "use commit_sync(), or commit_async() to go on without waiting",
        "consume": "use poll(timeout), which returns up to max_poll_records records",
        "consumer_group_metadata": "use group_metadata()",
        "get_watermark_offsets": "use beginning_offsets([partition]) and end_offsets([partition])",
        "getmany": "use poll(timeout)",
        "getone": "use poll(timeout) with max_poll_records=1, or iterate over the consumer",
        "highwater": "use current_lag(partition), or end_offsets([partition])",
        "incremental_assign": "use assign(partitions) with all partitions",
        "incremental_unassign": "use assign(partitions) with the remaining partitions",
        "memberid": "use group_metadata().member_id",
        "partitions_for_topic": "use partitions_for(topic)",
        "start": _WITH,
        "store_offsets": "use commit_sync({partition: OffsetAndMetadata(offset)})",
        "topics": "use list_topics()",
        "unassign": "use unsubscribe()",
    },
    "ConsumerRecords": dict.fromkeys(
        ("error", "headers", "items", "key", "offset", "partition", "timestamp", "topic", "value", "values"),
        _MANY,
    ),
    "Producer": {
        "list_topics": "use partitions_for(topic), or list_topics() of an Admin",
        "poll": _NO_POLL,
        "produce": "use send(topic, value=..., key=..., on_delivery=...)",
        "produce_batch": "use send_batch(topic, table)",
        "purge": "use close(timeout=0)",
        "send_and_wait": "use send(topic, value).result()",
        "start": _WITH,
    },
    "RecordFuture": {
        "add_both": "use add_callback(function), which gets the metadata or None, and the error or None",
        "add_done_callback": "use add_callback(function), which gets the metadata and the error",
        "add_errback": "use add_callback(function), which gets the metadata or None, and the error or None",
        "failed": "use done() and exception()",
        "get": "use result(timeout)",
        "is_done": "use done()",
        "succeeded": "use done() and exception()",
        "value": "use result(timeout)",
    },
}

ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "NewTopic()": {
        "num_partitions": "use partitions=3",
        "replica_assignment": "use assignments={partition: [broker ids]}",
        "replica_assignments": "use assignments={partition: [broker ids]}",
        "topic_configs": "use configs={...}",
        "config": "use configs={...}",
    },
    "poll()": {
        "max_records": "set max_poll_records when the consumer is created",
        "timeout_ms": "use poll(1.0): the timeout is in seconds",
    },
    "send()": {
        "callback": "use on_delivery=function, which gets the metadata or None, and the error or None",
        "timestamp_ms": "use timestamp=..., in milliseconds",
    },
    "subscribe()": {
        "on_assign": "use subscribe(topics, listener) with a RebalanceListener",
        "on_lost": "use subscribe(topics, listener) with a RebalanceListener",
        "on_revoke": "use subscribe(topics, listener) with a RebalanceListener",
        "pattern": 'use subscribe(re.compile("..."))',
    },
}

_NEGOTIATED = "leave it out: client and broker agree on versions by themselves"
_LOGGING = "leave it out: the clients use Python's logging"
_METRICS = "leave it out: metrics() returns the metrics"
_ENDLESS = "leave it out: poll(timeout) returns nothing when the time is over; `for` reads forever"

# Settings of other clients, in librdkafka's or kafka-python's spelling with dots.
SETTINGS: Mapping[str, str] = {
    "api.version": _NEGOTIATED,
    "api.version.request": _NEGOTIATED,
    "batch.num.messages": "use batch.size, in bytes",
    "broker.version.fallback": _NEGOTIATED,
    "compression.codec": "use compression.type",
    "consumer.timeout.ms": _ENDLESS,
    "debug": _LOGGING,
    "dr.cb": "use send(..., on_delivery=function)",
    "enable.auto.offset.store": "use enable.auto.commit=false and commit what is processed",
    "enable.partition.eof": "leave it out: current_lag(partition) is 0 at the end",
    "error.cb": _LOGGING,
    "fetch.message.max.bytes": "use max.partition.fetch.bytes",
    "fetch.wait.max.ms": "use fetch.max.wait.ms",
    "log.level": _LOGGING,
    "logger": _LOGGING,
    "max.batch.size": "use batch.size",
    "message.max.bytes": "use max.request.size",
    "message.timeout.ms": "use delivery.timeout.ms",
    "metadata.broker.list": "use bootstrap.servers",
    "metrics.enabled": _METRICS,
    "on.delivery": "use send(..., on_delivery=function)",
    "partitioner": "use partitioner.class",
    "queue.buffering.max.kbytes": "use buffer.memory, in bytes",
    "queue.buffering.max.messages": "use buffer.memory, in bytes",
    "queue.buffering.max.ms": "use linger.ms",
    "queued.max.messages.kbytes": "use fetch.max.bytes",
    "queued.min.messages": "leave it out: the consumer fetches in advance",
    "request.required.acks": "use acks",
    "sasl.plain.password": "use sasl.password",
    "sasl.plain.username": "use sasl.username",
    "socket.timeout.ms": "use request.timeout.ms",
    "ssl.cafile": "use ssl.ca.location",
    "ssl.certfile": "use ssl.certificate.location",
    "ssl.check.hostname": 'leave it out, or use ssl.endpoint.identification.algorithm="" for False',
    "ssl.ciphers": "use ssl.cipher.suites",
    "ssl.context": "use ssl.ca.location, ssl.certificate.location and ssl.key.location",
    "ssl.keyfile": "use ssl.key.location",
    "ssl.password": "use ssl.key.password",
    "statistics.interval.ms": _METRICS,
    "stats.cb": _METRICS,
    "topic.metadata.refresh.interval.ms": "use metadata.max.age.ms",
}


class NoKeywords(TypedDict):
    """The type of **keywords of a method that has none: it accepts them only to give a hint."""


def missing_attribute(kind: type, name: str) -> AttributeError:
    """The error for an attribute that objects of a class do not have, with a hint if there is one."""
    for base in kind.__mro__:
        # AsyncProducer gives the hints of Producer.
        if hint := METHODS.get(base.__name__.removeprefix("Async"), {}).get(name):
            return AttributeError(f"{kind.__name__} has no {name}(): {hint}")
    return AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")


def setting_hint(written: str) -> str | None:
    """What to use instead of a setting of another client, in the spelling of the user."""
    hint = SETTINGS.get(written.replace("_", "."))
    if hint is None or "." in written:
        return hint
    return re.sub(r"[a-z]+(?:\.[a-z]+)+", lambda name: name[0].replace(".", "_"), hint)


def check_keywords(method: str, keywords: Mapping[str, Any], known: Iterable[str] = ()) -> None:
    """Raise TypeError for keyword arguments that the method does not have."""
    for name in keywords:
        if name not in known:
            hint = ARGUMENTS.get(method, {}).get(name)
            text = f"{method} has no argument {name!r}"
            raise TypeError(f"{text}: {hint}" if hint else text)


def check_settings(client: str, settings: Any, more: tuple[Any, ...] = ()) -> None:
    """The only positional argument of a client is a dict of settings."""
    if more or not (settings is None or isinstance(settings, Mapping)):
        way = f"use {client}(bootstrap_servers='localhost:9092')"
        if "Consumer" in client:
            way = "topics are given by consumer.subscribe(['orders'])"
        raise TypeError(f"{client}() takes settings only, as keywords or as a dict: {way}")


class Hinted:
    """A class that gives hints about names it does not have."""

    __slots__ = ()

    if not TYPE_CHECKING:
        # Type checkers would believe that every name exists.
        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(type(self), name)
