"""Looks up positions: committed offsets, auto.offset.reset, and checks after a change of leader.

Runs on the I/O thread. If auto.offset.reset is none, the next poll raises what the user has to decide."""

import re
import time
from collections.abc import Callable

from barnabas.client.config import ClientConfig
from barnabas.client.consumer.lookups import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Identity,
    committed_offsets,
    epoch_ends,
    offsets_by_time,
)
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.state import (
    COMMITTED,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    RESET,
    Assignments,
    PartitionState,
)
from barnabas.client.errors import (
    ConfigError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from barnabas.client.types import TopicPartition
from barnabas.ids import ZERO_UUID

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


class Positions:
    def __init__(
        self,
        config: ClientConfig,
        network: Network,
        assignments: Assignments,
        identity: Callable[[], Identity],
    ) -> None:
        self._network = network
        self._assignments = assignments
        self._identity = identity
        self._policy: str = config["auto.offset.reset"]
        self._duration_ms = _duration_ms(self._policy) if self._policy.startswith("by_duration:") else 0
        self._had_missing = False
        is_committed = config["isolation.level"] == "read_committed"
        self.isolation = READ_COMMITTED if is_committed else READ_UNCOMMITTED

    async def resolve(self) -> None:
        """Look up the positions that are missing. The caller handles retriable errors."""
        states = list(self._assignments.states.values())
        self._network.track({state.partition.topic for state in states})
        # A partition without a leader must not delay the others; new metadata wakes the fetcher.
        led = [state for state in states if self._network.cached_leader(state.partition) is not None]
        has_missing = len(led) < len(states)
        if has_missing:
            self._network.raise_refusal()
        if has_missing or self._had_missing:
            self._network.report(state.partition for state in states)
        self._had_missing = has_missing
        states = led
        committed = [state for state in states if state.lookup == COMMITTED]
        if committed:
            await self._find_committed(committed)
        reset = [state for state in states if state.lookup == RESET]
        if reset:
            await self._reset(reset)
        await self._check_leaders([state for state in states if state.offset is not None])

    async def _find_committed(self, states: list[PartitionState]) -> None:
        requested = {state.partition: (state, state.version) for state in states}
        offsets = {}
        if self._network.group_id:
            offsets = await committed_offsets(self._network, requested, self._identity())
        missing = []
        for partition, (state, version) in requested.items():
            if partition in offsets:
                committed = offsets[partition]
                self._assignments.set_position(state, version, committed.offset, committed.leader_epoch)
            elif self._assignments.lookup_failed(state, version, None if self._policy == "none" else RESET):
                missing.append(partition)
        if missing and self._policy == "none":
            self._assignments.fail(NoOffsetForPartitionError(tuple(missing)))

    async def _reset(self, states: list[PartitionState]) -> None:
        with self._assignments.signal:
            # Check again under the lock: the user may have sought meanwhile.
            states = [state for state in states if state.lookup == RESET]
            requested = {state.partition: (state, state.version) for state in states}
            times = {state.partition: self._timestamp(state) for state in states}
        offsets = await offsets_by_time(self._network, times, self.isolation)
        late = {partition: LATEST_TIMESTAMP for partition in times if partition not in offsets}
        if late:
            # All records are older than the timestamp: read from the end.
            offsets |= await offsets_by_time(self._network, late, self.isolation)
        for partition, (state, version) in requested.items():
            if partition in offsets:
                self._assignments.set_position(state, version, offsets[partition].offset, -1)

    def _timestamp(self, state: PartitionState) -> int:
        if state.reset_timestamp is not None:
            return state.reset_timestamp
        if self._policy == "earliest":
            return EARLIEST_TIMESTAMP
        if self._duration_ms:
            return int(time.time() * 1000) - self._duration_ms
        return LATEST_TIMESTAMP

    async def _check_leaders(self, states: list[PartitionState]) -> None:
        """KIP-320: in a new leader's log, the last epoch that we read may end before our position."""
        moved = {}
        for state in states:
            if self._is_another_topic(state):
                continue
            epoch = self._network.leader_epoch(state.partition)
            # It is lower if the topic was deleted and created again.
            if epoch in (-1, state.leader_epoch):
                continue
            if state.epoch < 0 or state.epoch == epoch:
                state.leader_epoch = epoch
            else:
                moved[state.partition] = (state, state.version, state.offset, epoch)
        if not moved:
            return
        requested = {partition: entry[0].epoch for partition, entry in moved.items()}
        for partition, end in (await epoch_ends(self._network, requested)).items():
            state, version, offset, epoch = moved[partition]
            if state.version != version or offset is None:
                continue
            state.leader_epoch = epoch
            if end.end_offset < 0 or end.end_offset < offset:
                self._truncated(state, offset, end.end_offset, end.leader_epoch)

    def _is_another_topic(self, state: PartitionState) -> bool:
        """Whether the topic was deleted and created again: then the position is none in the new topic."""
        topic_id = self._network.topic_id(state.partition.topic)
        before, state.topic_id = state.topic_id, topic_id
        if before in (ZERO_UUID, topic_id) or topic_id == ZERO_UUID or state.offset is None:
            return False
        self._truncated(state, state.offset, -1, -1)
        return True

    def _truncated(self, state: PartitionState, offset: int, end_offset: int, end_epoch: int) -> None:
        if self._policy == "none":
            divergent = {state.partition: end_offset} if end_offset >= 0 else {}
            with self._assignments.signal:
                # Nothing is read until the user seeks.
                state.fetch_offset = -1
            self._assignments.fail(LogTruncationError({state.partition: offset}, divergent))
        elif end_offset >= 0:
            self._assignments.set_position(state, state.version, end_offset, end_epoch)
        else:
            with self._assignments.signal:
                state.look_up(RESET)

    def out_of_range(self, state: PartitionState, version: int, offset: int) -> None:
        """The broker no longer has the offset, or never had it."""
        with self._assignments.signal:
            # Buffered data can still be read; the error is handled when it comes again after that.
            if state.version != version or state.buffers:
                return
            if self._policy != "none":
                state.look_up(RESET)
                return
            state.fetch_offset = -1
        self._assignments.fail(OffsetOutOfRangeError({TopicPartition(*state.partition): offset}))


def _duration_ms(policy: str) -> int:
    matched = _DURATION.fullmatch(policy.removeprefix("by_duration:"))
    parts = [float(part or 0) for part in matched.groups()] if matched else []
    if not any(parts):
        raise ConfigError(f"auto.offset.reset is {policy!r}: the duration must look like by_duration:P1DT2H.")
    days, hours, minutes, seconds = parts
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
