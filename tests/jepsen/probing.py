"""The stage's own clients: a writer that sees when the cluster is writable, and the last readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from tests.jepsen.client_processes import VALUES_PER_PROCESS, first_error, micro_sends, micro_sent, outcome_of
from tests.jepsen.clients import library
from tests.jepsen.clients.base import FAIL, OK, Group, OperationError, Reader
from tests.jepsen.history import Recorder

from barnabas.ids import TopicPartition

POLL_SECONDS = 0.5
RETRY_SECONDS = 0.1
# Above those of all other processes.
FIRST_NUMBER = 1_000_000


class Probes:
    """Records what it does, like all processes. Each probe is a new process with a new client."""

    def __init__(self, bootstrap: Callable[[], str], recorder: Recorder) -> None:
        self._bootstrap = bootstrap
        self._recorder = recorder
        self._numbers = count(FIRST_NUMBER)

    def write(self, partitions: Sequence[TopicPartition], seconds_max: float) -> dict[TopicPartition, int]:
        """One record to each partition; the offsets. TimeoutError if one is not acknowledged in time."""
        deadline = time.monotonic() + seconds_max
        written: dict[TopicPartition, int] = {}
        reason: str | None = None
        while left := [each for each in partitions if each not in written]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"cannot write to {', '.join(map(str, left))}: {reason}")
            offsets, reason = self._write_once(left)
            written |= offsets
            if reason is not None:
                time.sleep(RETRY_SECONDS)
        return written

    def _write_once(
        self, partitions: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], str | None]:
        number = next(self._numbers)
        values = count(number * VALUES_PER_PROCESS)
        records = [(partition, next(values)) for partition in partitions]
        self._recorder.invoke(number, "send", micro_sends(records))
        try:
            writer = library("ours").writer(self._bootstrap(), f"probe-{number}", in_flight=True)
        except OperationError as error:
            self._recorder.complete(number, FAIL, None, str(error))
            return {}, str(error)
        try:
            sent = writer.send(records)
        finally:
            writer.close()
        outcome, reason = outcome_of(sent), first_error(sent)
        self._recorder.complete(number, outcome, micro_sent(records, sent, outcome), reason)
        known = zip(partitions, sent, strict=True)
        return {place: each.offset for place, each in known if each.offset is not None}, reason

    def read(self, name: str, ends: Mapping[TopicPartition, int], seconds_max: float) -> list[TopicPartition]:
        """Read all partitions with a new client of this library, up to these offsets and including them.
        Returns those whose end did not come in time."""
        number = next(self._numbers)
        reader = library(name).reader(self._bootstrap(), f"last-reader-{number}")
        try:
            self._recorder.invoke(number, "assign", [str(each) for each in ends])
            reader.assign(list(ends))
            self._recorder.complete(number, OK)
            return self._read(number, reader, ends, time.monotonic() + seconds_max)
        finally:
            reader.close()

    def _read(
        self, number: int, reader: Reader, ends: Mapping[TopicPartition, int], deadline: float
    ) -> list[TopicPartition]:
        left = {str(partition): end for partition, end in ends.items()}
        while left and time.monotonic() < deadline:
            self._recorder.invoke(number, "poll", [["poll"]])
            try:
                polled = reader.poll(POLL_SECONDS)
            except OperationError as error:
                self._recorder.complete(number, error.outcome, None, str(error))
                continue
            self._recorder.complete(number, OK, polled)
            for key, pairs in polled[-1][1].items():
                if pairs[-1][0] >= left.get(key, 0):
                    left.pop(key, None)
        return [partition for partition in ends if str(partition) in left]

    def committed(self, group: str, partitions: Sequence[TopicPartition]) -> None:
        """Record what a group has committed."""
        number = next(self._numbers)
        reader = library("ours").reader(self._bootstrap(), f"last-reader-{number}", Group(group))
        try:
            self._recorder.invoke(number, "committed", [["committed", group]])
            found = {str(each): offset for each, offset in reader.committed(partitions).items()}
            self._recorder.complete(number, OK, [["committed", group, found]])
        except OperationError as error:
            self._recorder.complete(number, error.outcome, None, str(error))
            raise
        finally:
            reader.close()
