"""Looks at groups: those of consumers with their members, committed offsets, lag, and how it changed.

One round describes at most some hundred groups, those that were not described for the longest time first.
Groups beyond that are looked at in later rounds."""

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.client.admin import ConsumerGroupDescription
from barnabas.client.admin.types import GroupListing
from barnabas.client.aio.admin import AsyncAdmin
from barnabas.client.errors import ClosedError, KafkaError
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.console.series import HISTORY_SECONDS, now_ms

if TYPE_CHECKING:
    from barnabas.console.sampling import Sampler

_log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
SHARE_MAX = 0.1
GROUPS_OF_ONE_ROUND_MAX = 300
AT_ONCE = 8
# The lag of single partitions is kept for groups with at most this many of them.
PARTITIONS_MAX = 200
# Apache Kafka has groups of these types. Our client does not describe them: they are only listed.
ONLY_LISTED = ("share", "streams")


@dataclass
class GroupState:
    """What was seen of one group last, and its lag over time."""

    listing: GroupListing
    description: ConsumerGroupDescription | None = None
    offsets: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    looked_at: float = 0.0
    total: "deque[tuple[int, int]]" = field(default_factory=lambda: deque(maxlen=360))
    by_partition: "dict[TopicPartition, deque[tuple[int, int]]]" = field(default_factory=dict)

    @property
    def is_only_listed(self) -> bool:
        return self.listing.type in ONLY_LISTED


class GroupSampler:
    def __init__(self, admin: AsyncAdmin, cluster: "Sampler", seconds: float) -> None:
        self._admin = admin
        self._cluster = cluster
        self._seconds = seconds
        self.points_max = max(2, int(HISTORY_SECONDS / max(seconds, 0.1)))
        self.states: dict[str, GroupState] = {}
        self.stale_since_ms: int | None = None
        self._looked_ms = now_ms()
        self._first = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def ready(self) -> None:
        await self._first.wait()

    async def _run(self) -> None:
        await self._cluster.ready_or_failed()
        while True:
            started = time.process_time()
            try:
                await self.look()
            except ClosedError:
                return
            except KafkaError as error:
                _log.debug("the look at the groups failed: %s", error.message)
                self.stale_since_ms = self.stale_since_ms or self._looked_ms
            except Exception:
                _log.exception("a look at the groups failed")
            self._first.set()
            await asyncio.sleep(max(self._seconds, (time.process_time() - started) / SHARE_MAX))

    async def look(self) -> None:
        listings = {each.group_id: each for each in await self._listed()}
        for name in self.states.keys() - listings.keys():
            del self.states[name]
        for name, listing in listings.items():
            self.states.setdefault(name, GroupState(listing)).listing = listing
        self._looked_ms, self.stale_since_ms = now_ms(), None
        described = [name for name, state in self.states.items() if not state.is_only_listed]
        due = sorted(described, key=lambda name: self.states[name].looked_at)[:GROUPS_OF_ONE_ROUND_MAX]
        limit = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._look_at(name, limit) for name in due))

    async def _listed(self) -> list[GroupListing]:
        listed = await self._admin.list_groups(timeout=ANSWER_SECONDS)
        return [each for each in listed if each.is_of_consumers or each.type in ONLY_LISTED]

    async def _look_at(self, name: str, limit: asyncio.Semaphore) -> None:
        state = self.states[name]
        async with limit:
            state.looked_at = time.monotonic()
            try:
                described = await self._admin.describe_consumer_groups([name], timeout=ANSWER_SECONDS)
                state.offsets = await self._admin.list_consumer_group_offsets(name, timeout=ANSWER_SECONDS)
            except KafkaError as error:
                _log.debug("group %s cannot be described: %s", name, error.message)
                return
            state.description = described[name]
        self._note_lag(state)

    def _note_lag(self, state: GroupState) -> None:
        # Offsets of topics that are gone, or that are too new to be known, do not count.
        if state.offsets and not any(each in self._cluster.ends for each in state.offsets):
            return
        moment, total = now_ms(), 0
        keeps_partitions = len(state.offsets) <= PARTITIONS_MAX
        for partition, committed in state.offsets.items():
            end = self._cluster.ends.get(partition)
            if end is None:
                continue
            lag = max(0, end - committed.offset)
            total += lag
            if keeps_partitions:
                points = state.by_partition.setdefault(partition, deque(maxlen=self.points_max))
                points.append((moment, lag))
        state.total.append((moment, total))
        for gone in state.by_partition.keys() - state.offsets.keys():
            del state.by_partition[gone]

    def lag_of(self, state: GroupState) -> int | None:
        """None if nothing is committed, or not looked at yet."""
        return state.total[-1][1] if state.total and state.offsets else None
