"""A writer that talks to one broker only, whether this broker leads or not."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from itertools import count
from typing import NamedTuple, Self

from tests.jepsen.client_processes import VALUES_PER_PROCESS
from tests.jepsen.clients.base import FAIL, OK, UNKNOWN, encode
from tests.jepsen.history import Recorder
from tests.jepsen.stage import Stage
from tests.support.raw_calls import PRODUCE, Topic, batch_of, produce_request
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode, error_of
from barnabas.ids import TopicPartition

# Above those of all other processes of a history.
NUMBERS = count(2_000_000)
VERSION = 9
ANSWER_MS_MAX = 500
PAUSE_SECONDS = 0.02
# With these the broker has certainly not appended the record.
NOT_APPENDED = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Ack(NamedTuple):
    """A record that was acknowledged: when it was sent and when the answer came, in seconds of the monotonic
    clock."""

    sent_at: float
    came_at: float
    offset: int


class DirectWriter:
    """Sends one record after the other with acks=all to this broker, not through any link, and does not
    repeat what fails. It is a process of the history like all others. Use it in a `with` block in a run."""

    def __init__(self, stage: Stage, broker_id: int, partition: TopicPartition) -> None:
        self.broker_id = broker_id
        self.acks: list[Ack] = []
        self.errors: Counter[ErrorCode] = Counter()
        self._port = stage.system.brokers[broker_id].port
        self._partition = partition
        self._number = next(NUMBERS)
        self._values = count(self._number * VALUES_PER_PROCESS)
        self._recorder = Recorder(stage.directory / f"history-direct-{self._number}.jsonl")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="direct writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._recorder.close()

    def acked_since(self, moment: float) -> list[Ack]:
        """Those that were sent after this moment."""
        return [ack for ack in self.acks if ack.sent_at >= moment]

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(OSError), RawClient("127.0.0.1", self._port) as client:
                while not self._stopping.wait(PAUSE_SECONDS):
                    self._send(client)
            self._stopping.wait(PAUSE_SECONDS)

    def _send(self, client: RawClient) -> None:
        key, value = str(self._partition), next(self._values)
        topic = Topic(self._partition.topic, bytes(16))
        request = produce_request(topic, batch_of(encode(value)), partition=self._partition.partition)
        request.timeout_ms = ANSWER_MS_MAX
        self._recorder.invoke(self._number, "send", [["send", key, value]])
        sent_at = time.monotonic()
        try:
            answer = client.call(PRODUCE, VERSION, request).responses[0].partition_responses[0]
        except OSError as error:
            self._recorder.complete(self._number, UNKNOWN, None, repr(error))
            raise
        code = error_of(answer.error_code)
        self.errors[code] += 1
        if code is ErrorCode.NONE:
            self.acks.append(Ack(sent_at, time.monotonic(), answer.base_offset))
            self._recorder.complete(self._number, OK, [["send", key, [answer.base_offset, value]]])
        else:
            outcome = FAIL if code in NOT_APPENDED else UNKNOWN
            self._recorder.complete(self._number, outcome, None, code.name)
