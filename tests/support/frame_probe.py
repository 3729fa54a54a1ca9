"""A broker that gets hostile frames, and another client that measures how long it has to wait meanwhile."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.known_names import KnownNames, known_names
from tests.support.raw_calls import METADATA, PRODUCE, Topic, batch_of, new_topic, produce_request
from tests.support.raw_client import RawClient

from barnabas.testing import Broker
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

# How long others may wait for an answer.
WAIT_SECONDS_MAX = 0.1
# A wait that comes from the machine is not there again when the same frames come again.
TRIES = 3
# What an array element and its answer may take as objects.
ELEMENT_BYTES_MAX = 600


class Stage(NamedTuple):
    broker: Broker
    probed: Topic
    known: KnownNames


@contextmanager
def prepared_stage() -> Iterator[Stage]:
    """A broker with a topic to probe and names that are known; it must not log an error."""
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


class MemoryMeter:
    """How much a broker's memory has grown at most since the meter was made."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._before = self._read("VmRSS")
        # The peak is measured from here on.
        Path(f"/proc/{broker.pid}/clear_refs").write_text("5")

    def grown_bytes(self) -> int:
        return self._read("VmHWM") - self._before

    def _read(self, line: str) -> int:
        text = Path(f"/proc/{self._broker.pid}/status").read_text()
        return int(text.partition(line + ":")[2].split()[0]) * 1024
