"""One peer must not stop the others, whatever it may lawfully ask: the largest frames of every API.

While a broker answers such a frame, another connection writes and asks for metadata, and measures how long it
waits. The wait must be at most 100 ms. Times in which the broker or the measuring thread could run, but the
system had no processor for them, are subtracted: they are the machine's, not the broker's.

Memory may grow by ten times the frame, or by a kilobyte for each of the elements that one request may have:
so much can an element and its answer take as objects, however short it is in the frame."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.largest_frames import Known, frame_of, shapes_of
from tests.support.raw_calls import PRODUCE, Topic, batch_of, new_topic, produce_request
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import RawTransactional

from barnabas.broker.apis import ROWS
from barnabas.broker.dispatch import ELEMENTS_MAX
from barnabas.testing import Broker
from barnabas.wire.apis import api_of
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA, CONSUMER_GROUP_HEARTBEAT = 3, 68
WAIT_SECONDS_MAX = 0.1
MEMORY_PER_FRAME_BYTE = 10
MEMORY_BYTES_MIN = 1000 * ELEMENTS_MAX
TRIES = 3
PARTITIONS = 50


class Stage(NamedTuple):
    broker: Broker
    probed: Topic
    known: Known
    known_to_consumers: Known


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Broker(subprocess=True) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            yield _stage(broker, client)
        assert "Traceback" not in broker.output(), broker.output()[-3000:]


def _stage(broker: Broker, client: RawClient) -> Stage:
    """A topic with 50 partitions, a group of each protocol with a member, and a transactional id."""
    topic = new_topic(client, PARTITIONS, name="known-topic")
    group = RawGroup(client, "known-group")
    group.find()
    joined = group.joined()
    group.sync(joined, {joined.member_id: b"assigned"})
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="known-consumers",
        member_id="known-member",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic.name],
        topic_partitions=[],
    )
    member = client.call(CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
    assert member.error_code == 0
    producer = RawTransactional(client, "known-transaction")
    producer.init()
    names = dict.fromkeys(("name", "topic", "topics", "topic_name", "resource_name"), topic.name)
    names |= dict.fromkeys(
        ("group_id", "groups", "groups_names", "group_ids", "coordinator_keys", "key"), group.name
    )
    names |= dict.fromkeys(
        ("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), "known-transaction"
    )
    values = names | {
        "topic_id": topic.id,
        "member_id": joined.member_id,
        "generation_id": joined.generation_id,
        "generation_id_or_member_epoch": joined.generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "v3_and_below_producer_id": producer.id,
        "v3_and_below_producer_epoch": producer.epoch,
        "client_software_name": "test",
        "client_software_version": "1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "num_partitions": 1,
        "replication_factor": 1,
        "count": PARTITIONS + 1,
        "resource_type": 2,
        "resource_types": 2,
        "acks": 1,
        "response_partition_limit": 2000,
        "timeout_ms": 10_000,
    }
    consumers = values | dict.fromkeys(("group_id", "group_ids"), "known-consumers")
    consumers |= {"member_id": "known-member", "member_epoch": member.member_epoch}
    return Stage(
        broker,
        new_topic(client, name="probed-topic"),
        Known(values, PARTITIONS),
        Known(consumers, PARTITIONS),
    )


class Probe:
    """Another client, in a thread: how long it waits for an acknowledgement or a topic's metadata at most."""

    def __init__(self, broker: Broker, topic: Topic) -> None:
        self._broker_times = Path(f"/proc/{broker.pid}/schedstat")
        self._client = RawClient("127.0.0.1", broker.port, timeout_seconds=120)
        records = batch_of(b"value")
        self._frames = [
            self._client.encode(PRODUCE, 9, produce_request(topic, records, acks=1)),
            self._client.encode(METADATA, 9, MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)])),
        ]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.longest_seconds = 0.0

    def __enter__(self) -> "Probe":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        own_times = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        while not self._stopping.is_set():
            for frame in self._frames:
                began, delayed = time.monotonic(), _delayed(self._broker_times) + _delayed(own_times)
                self._client.send_bytes(frame)
                self._client.receive_frame()
                waited = time.monotonic() - began
                delayed = _delayed(self._broker_times) + _delayed(own_times) - delayed
                self.longest_seconds = max(self.longest_seconds, waited - delayed)
            self._stopping.wait(0.001)


def _delayed(schedstat: Path) -> float:
    """For how many seconds a thread was ready to run and had to wait for a processor."""
    return int(schedstat.read_text().split()[1]) / 1e9


def _memory(broker: Broker, line: str) -> int:
    text = Path(f"/proc/{broker.pid}/status").read_text()
    return int(text.partition(line + ":")[2].split()[0]) * 1024


class Outcome(NamedTuple):
    wait_seconds: float
    grown_bytes: int
    is_answered: bool

    def text(self) -> str:
        return f"others waited {self.wait_seconds * 1000:.0f} ms, memory grew by {self.grown_bytes >> 20} MB"


def _send(stage: Stage, frame: bytes) -> Outcome:
    before = _memory(stage.broker, "VmRSS")
    # The peak is measured from here on.
    Path(f"/proc/{stage.broker.pid}/clear_refs").write_text("5")
    with Probe(stage.broker, stage.probed) as probe:
        with RawClient("127.0.0.1", stage.broker.port, timeout_seconds=120) as client:
            is_answered = False
            with contextlib.suppress(ConnectionError):
                client.send_bytes(frame)
                client.receive_frame()
                is_answered = True
        # What a handler leaves behind, such as freeing the memory, belongs to the frame as well.
        time.sleep(0.05)
    return Outcome(probe.longest_seconds, _memory(stage.broker, "VmHWM") - before, is_answered)


def _problem(outcome: Outcome, frame: bytes) -> str | None:
    allowed = max(MEMORY_BYTES_MIN, MEMORY_PER_FRAME_BYTE * len(frame))
    if outcome.wait_seconds > WAIT_SECONDS_MAX:
        return "the wait is too long"
    if outcome.grown_bytes > allowed:
        return f"at most {allowed >> 20} MB are allowed"
    if not outcome.is_answered:
        return "the connection was closed"
    return None


@pytest.mark.parametrize("key", ROWS, ids=lambda key: ROWS[key].name)
def test_the_largest_frames_delay_nobody(stage: Stage, key: int) -> None:
    api = api_of(key)
    assert api is not None
    known = stage.known_to_consumers if ROWS[key].name.startswith("ConsumerGroup") else stage.known
    problems = []
    oldest, newest = ROWS[key].versions
    for version in sorted({oldest, newest}):
        shapes = list(shapes_of(api.request, version, ELEMENTS_MAX))
        # Of the oldest version the last shape: the innermost array, in the form that is reshaped.
        for shape in shapes if version == newest else shapes[-1:]:
            frame = frame_of(api, version, shape, known)
            outcome, problem = _tried(stage, frame)
            line = f"v{version}, {shape.label}, {len(frame) >> 10} KB: {outcome.text()}"
            print(line)
            if problem is not None:
                problems.append(f"{line}: {problem}")
    assert not problems, "\n".join(problems)


def _tried(stage: Stage, frame: bytes) -> tuple[Outcome, str | None]:
    """A wait that comes from the machine is not there again when the same frame comes again."""
    for _ in range(TRIES):
        outcome = _send(stage, frame)
        problem = _problem(outcome, frame)
        if problem is None:
            break
    return outcome, problem
