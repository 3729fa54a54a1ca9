"""Fill topics of a broker with every kind of batch, and find their directories."""

import time
from pathlib import Path

from tests.clients.client import CODECS, Message, Sending, wait_until
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.consumers import ConsumerSetup
from tests.clients.members import PATIENCE_SECONDS, Member, places_of, settle

SEGMENTED = "segmented"
IDEMPOTENT = "idempotent"
TIMED = "log-append-time"
SEGMENT_BYTES = 1_048_576  # the smallest that Kafka accepts


def codec_topic(codec: str) -> str:
    return f"codec-{codec}"


TOPICS = (SEGMENTED, IDEMPOTENT, TIMED, *(codec_topic(codec) for codec in CODECS))


def stock(bootstrap: str) -> None:
    """Several segments with dense indexes, all codecs, idempotent producers, tombstones, headers."""
    admin = ConfluentAdmin(bootstrap)
    client = ConfluentClient(bootstrap)
    segmented = {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "1024"}
    admin.create_topic(SEGMENTED, configs=segmented)
    base_ms = int(time.time() * 1000) - 1_000_000
    for turn in range(5):
        messages = [_message(turn * 1000 + number, base_ms, 800) for number in range(1000)]
        client.produce(SEGMENTED, messages, Sending(bytes_max=10_000, idempotent=turn == 3))
    for codec in CODECS:
        admin.create_topic(codec_topic(codec), configs={"index.interval.bytes": "128"})
        messages = [_message(number, base_ms, 200) for number in range(500)]
        client.produce(codec_topic(codec), messages, Sending(compression=codec, bytes_max=4_000))
    admin.create_topic(IDEMPOTENT)
    for _ in range(3):
        messages = [_message(number, base_ms, 20) for number in range(10)]
        client.produce(IDEMPOTENT, messages, Sending(idempotent=True, linger_ms=200))
    admin.create_topic(TIMED, configs={"message.timestamp.type": "LogAppendTime"})
    client.produce(TIMED, [_message(number, base_ms, 20) for number in range(50)])


def _message(number: int, base_ms: int, size: int) -> Message:
    value = None if number % 50 == 49 else f"value {number} ".encode().ljust(size, b".")
    headers = (("number", b"%d" % number), ("null", None)) if number % 10 == 0 else ()
    return Message(value, f"key {number % 100}".encode(), headers, base_ms + number * 3)


def read_all(bootstrap: str) -> dict[str, list[Message]]:
    client = ConfluentClient(bootstrap)
    return {topic: client.read(topic, client.offset_range(topic)[1]) for topic in TOPICS}


def read_and_leave(bootstrap: str, setup: ConsumerSetup, count: int) -> list[bytes]:
    """Let a member of a group read `count` records of partition 0, commit and leave; the values it read."""
    member = Member("confluent-kafka", bootstrap, setup)
    settle([member], places_of(setup.topics[0], 1))
    wait_until(lambda: len(member.received) >= count, f"{count} records are read", PATIENCE_SECONDS)
    member.ask(lambda consumer: consumer.commit())
    member.leave()
    return member.values


def partition_directory(below: Path, topic: str) -> Path:
    """The directory of partition 0 of the topic, in any layout of log directories."""
    (directory,) = [path for path in below.rglob(f"{topic}-0") if path.is_dir()]
    return directory
