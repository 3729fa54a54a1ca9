"""All partitions that this broker follows, spread over fetchers: num.replica.fetchers for each leader."""

import asyncio
import logging
import zlib
from collections.abc import Iterable

from barnabas.clock import Clock
from barnabas.ids import TopicPartition
from barnabas.replication.following.fetcher import Fetcher
from barnabas.replication.following.followed import Followed
from barnabas.replication.following.ports import FollowingSettings, LeaderTransport
from barnabas.replication.partition import Partition
from barnabas.replication.throttling import RateLimit

logger = logging.getLogger(__name__)


class FollowerManager:
    """The port `Followers` of replication."""

    def __init__(
        self,
        transport: LeaderTransport,
        settings: FollowingSettings,
        clock: Clock,
        throttle: RateLimit | None = None,
    ) -> None:
        self._transport = transport
        self.settings = settings
        self._clock = clock
        # follower.replication.throttled.rate.
        self.throttle = throttle or RateLimit(clock)
        # By leader and number.
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._tasks: dict[Fetcher, asyncio.Task[None]] = {}
        self._followed: dict[TopicPartition, Followed] = {}
        self._is_stopped = False
        # Bytes of records that fetchers without partitions have fetched; see bytes_fetched.
        self._bytes_of_ended = 0

    # ---- the port

    def follow(self, partition: Partition) -> None:
        """See Followers.follow."""
        self._drop(partition.topic_partition)
        if self._is_stopped or partition.log.offline:
            return
        followed = Followed(partition, self.settings.backoff_seconds_max)
        self._followed[partition.topic_partition] = followed
        self._fetcher_of(followed).add(followed)

    def let_go(self, partition: Partition) -> None:
        """See Followers.let_go."""
        followed = self._followed.get(partition.topic_partition)
        if followed is not None and followed.partition is partition:
            self._drop(partition.topic_partition)

    def _drop(self, topic_partition: TopicPartition) -> None:
        followed = self._followed.pop(topic_partition, None)
        fetcher = None if followed is None else self._fetchers.get(self._place_of(followed))
        if followed is not None and fetcher is not None:
            fetcher.remove(followed.key)

    # ---- fetchers

    def _place_of(self, followed: Followed) -> tuple[int, int]:
        topic, index = followed.partition.topic_partition
        return followed.leader_id, (zlib.crc32(topic.encode()) + index) % self.settings.fetchers_per_leader

    def _fetcher_of(self, followed: Followed) -> Fetcher:
        place = self._place_of(followed)
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = Fetcher(*place, self._transport, self.settings, self._clock, self.throttle)
            self._fetchers[place] = fetcher
            task = asyncio.get_running_loop().create_task(self._run(place, fetcher), name=repr(fetcher))
            self._tasks[fetcher] = task
        return fetcher

    async def _run(self, place: tuple[int, int], fetcher: Fetcher) -> None:
        """Let the fetcher work until it has no partitions."""
        try:
            while fetcher.partitions:
                try:
                    await fetcher.run()
                except Exception:
                    logger.exception("%r failed; it goes on after a pause", fetcher)
                    await asyncio.sleep(self.settings.backoff_seconds_max)
        finally:
            del self._tasks[fetcher]
            self._bytes_of_ended += fetcher.bytes_fetched
            if self._fetchers.get(place) is fetcher:
                del self._fetchers[place]

    # ---- changes of the broker

    def reconfigure(self, settings: FollowingSettings) -> None:
        """Take changed settings: all partitions move to new fetchers, and the old ones end."""
        if settings == self.settings:
            return
        partitions = [followed.partition for followed in self._followed.values()]
        for partition in partitions:
            self._drop(partition.topic_partition)
        self._fetchers.clear()
        self.settings = settings
        for partition in partitions:
            self.follow(partition)

    async def stop(self) -> None:
        """Stop fetching; nothing is appended after this."""
        self._is_stopped = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._followed.clear()

    # ---- read by /metrics

    def followed(self) -> Iterable[Followed]:
        return list(self._followed.values())

    @property
    def bytes_fetched(self) -> int:
        return self._bytes_of_ended + sum(fetcher.bytes_fetched for fetcher in self._tasks)

    @property
    def lag_max(self) -> int:
        """The largest lag of a partition, in records."""
        return max((followed.lag for followed in self._followed.values()), default=0)

    @property
    def failed_partitions(self) -> int:
        return sum(followed.problem is not None for followed in self._followed.values())

    @property
    def failing_fetchers(self) -> int:
        """Fetchers whose leader does not answer."""
        return sum(fetcher.is_failing for fetcher in self._fetchers.values())
