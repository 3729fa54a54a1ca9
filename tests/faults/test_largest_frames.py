"""One peer must not stop the others, whatever valid frame it sends: the largest frames of every API.

While a broker answers such a frame, another connection writes and asks for metadata, and measures how long it
waits. The wait must be at most 100 ms. Times in which the broker or the measuring thread could run, but the
system had no processor for them, are subtracted: they are the machine's, not the broker's.

Memory may grow by ten times the frame, or by 1,200 bytes for each of the elements that one request may have:
that is what the objects of an element and its answer can take, however short the element is in the frame."""

import contextlib
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.known_names import KnownNames, known_names
from tests.support.largest_frames import frame_of, shapes_of
from tests.support.raw_calls import PRODUCE, Topic, batch_of, new_topic, produce_request
from tests.support.raw_client import RawClient

from barnabas.broker.apis import ROWS
from barnabas.broker.call import ELEMENTS_MAX
from barnabas.testing import Broker
from barnabas.wire.apis import api_of
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA, DESCRIBE_GROUPS = 3, 15
# The default of socket.request.max.bytes.
FRAME_BYTES_MAX = 100 * 1024 * 1024
WAIT_SECONDS_MAX = 0.1
MEMORY_PER_FRAME_BYTE = 10
MEMORY_BYTES_MIN = 1200 * ELEMENTS_MAX
TRIES = 3


class Stage(NamedTuple):
    broker: Broker
    probed: Topic
    known: KnownNames


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Broker(subprocess=True) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            yield Stage(broker, new_topic(client, name="probed-topic"), known_names(client))
        assert "Traceback" not in broker.output(), broker.output()[-3000:]


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
                client.discard_frame()
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
    known = stage.known.of_api(ROWS[key].name)
    problems = []
    oldest, newest = ROWS[key].versions
    for version in sorted({oldest, newest}):
        shapes = list(shapes_of(api.request, version, ELEMENTS_MAX))
        # For the oldest version only the last shape: the innermost array, in the form that is converted.
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


# ---- at the limit of socket.request.max.bytes


def test_a_frame_of_the_largest_size_delays_nobody(stage: Stage) -> None:
    """Long names, so that the answer is as long as the request."""
    count = 45_000
    names = [f"{number:08d}" + "g" * (FRAME_BYTES_MAX // count - 30) for number in range(count)]
    with RawClient("127.0.0.1", stage.broker.port) as client:
        frame = client.encode(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=names))
    assert 0.9 * FRAME_BYTES_MAX < len(frame) <= FRAME_BYTES_MAX
    outcome, problem = _tried(stage, frame)
    assert problem is None, outcome.text()


def test_a_frame_with_too_many_elements_is_refused_at_once(stage: Stage) -> None:
    with RawClient("127.0.0.1", stage.broker.port) as client:
        frame = client.encode(DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=[]))
    count = (FRAME_BYTES_MAX - len(frame)) // 3
    groups = struct.pack(">i", count) + b"\0\1g" * count
    body = frame[4:-4] + groups
    outcome = _send(stage, struct.pack(">i", len(body)) + body)
    assert not outcome.is_answered
    assert "array elements" in stage.broker.output()
    assert outcome.wait_seconds <= WAIT_SECONDS_MAX, outcome.text()
