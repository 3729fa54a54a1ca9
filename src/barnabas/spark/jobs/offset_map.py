"""Corresponding offsets of the source and the target of a mirror, stored in a compacted topic of the target.

A pair (s, t) of a partition means: the records before s in the source are the records before t in the target.
Pairs are taken between rounds, when nothing is written. The last few pairs of each partition are kept: their
keys repeat after KEPT pairs, and compaction removes the older pair of a key."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.client import Admin, Consumer, Producer
from barnabas.client.admin.types import NewTopic
from barnabas.client.keys import CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.ids import TopicPartition

POLL_SECONDS = 1.0
# How many pairs of a partition are kept.
KEPT = 64


class Meeting(NamedTuple):
    """`source` and `target` are the next offsets of the two partitions; `number` counts the pairs."""

    partition: TopicPartition
    copy: TopicPartition
    source: int
    target: int
    number: int = 0


History = dict[TopicPartition, list[Meeting]]
"""The stored pairs of each partition of the source, oldest first."""


def map_topic(alias: str) -> str:
    return f"mirror-offsets.{alias}.internal"


def ensure_map(admin: Admin, alias: str) -> None:
    name = map_topic(alias)
    if name not in admin.list_topics(include_internal=True):
        admin.create_topics([NewTopic(name, 1, configs={"cleanup.policy": "compact"})])


def write_meetings(client: Mapping[str, str], alias: str, meetings: Iterable[Meeting]) -> None:
    settings = {name: value for name, value in client.items() if name in PRODUCER_KEYS}
    with Producer(settings) as producer:
        sent = [
            producer.send(map_topic(alias), _value(each), key=_key(each), partition=0) for each in meetings
        ]
        producer.flush()
        for future in sent:
            future.result()


def read_meetings(client: Mapping[str, str], alias: str) -> History:
    settings = {name: value for name, value in client.items() if name in CONSUMER_KEYS}
    where = TopicPartition(map_topic(alias), 0)
    by_slot: dict[tuple[TopicPartition, int], Meeting] = {}
    with Consumer({**settings, "enable.auto.commit": False}) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end = consumer.end_offsets([where])[where]
        while consumer.position(where) < end:
            for record in consumer.poll(POLL_SECONDS):
                meeting = _meeting(record.value)
                by_slot[meeting.partition, meeting.number % KEPT] = meeting
    history: History = {}
    for meeting in sorted(by_slot.values(), key=lambda each: each.number):
        history.setdefault(meeting.partition, []).append(meeting)
    return history


def added(history: History, meetings: Iterable[Meeting]) -> list[Meeting]:
    """Add new pairs to the history; returns them with their numbers."""
    new = []
    for meeting in meetings:
        known = history.setdefault(meeting.partition, [])
        if not known or known[-1][:4] != meeting[:4]:
            known.append(meeting._replace(number=known[-1].number + 1 if known else 0))
            new.append(known[-1])
    return new


def _key(meeting: Meeting) -> bytes:
    topic, partition = meeting.partition
    return json.dumps({"topic": topic, "partition": partition, "slot": meeting.number % KEPT}).encode()


def _value(meeting: Meeting) -> bytes:
    document = {
        "topic": meeting.partition.topic,
        "partition": meeting.partition.partition,
        "offset": meeting.source,
        "number": meeting.number,
        "target": {
            "topic": meeting.copy.topic,
            "partition": meeting.copy.partition,
            "offset": meeting.target,
        },
    }
    return json.dumps(document).encode()


def _meeting(value: bytes | None) -> Meeting:
    document: dict[str, Any] = json.loads(value or b"{}")
    target = document["target"]
    return Meeting(
        TopicPartition(document["topic"], int(document["partition"])),
        TopicPartition(target["topic"], int(target["partition"])),
        int(document["offset"]),
        int(target["offset"]),
        int(document["number"]),
    )
