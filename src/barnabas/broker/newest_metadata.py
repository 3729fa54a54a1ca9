"""Whether the metadata of this broker were the newest ones at some moment.

A broker that was paused, or that is cut off from the store, has metadata of the past and does not know it:
it still takes itself for the leader of partitions that others lead by now. Before it gives an answer that
must not come from a former leader, it asks the store where the metadata log ends, and waits until its image
is there. Owned by the event loop."""

from __future__ import annotations

import asyncio
import logging

from barnabas.clock import Clock
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.store import StoreError

logger = logging.getLogger(__name__)

NEVER = float("-inf")


class NewestMetadata:
    def __init__(self, node: MetadataNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._newest_at = NEVER
        # One question at a time is enough for all who wait.
        self._asking: asyncio.Task[None] | None = None

    def is_newest_since(self, moment: float) -> bool:
        """Whether the image was the newest one at some time from `moment` on. If that is not known, the store
        is asked, and a later call can tell."""
        if self._newest_at >= moment:
            return True
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        return False

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask(self) -> None:
        asked_at = self._clock.monotonic()
        try:
            await self._node.catch_up()
        except StoreError as error:
            logger.debug("it is not known whether the metadata are the newest ones: %s", error)
        else:
            self._newest_at = asked_at
        finally:
            self._asking = None
