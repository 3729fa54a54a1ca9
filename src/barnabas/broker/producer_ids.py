"""Producer ids for this broker: handed out from blocks that the controller reserves in the metadata log.

Ids of a block that are left when the broker stops are never given again. Owned by the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.metadata.controller import Controller


class ProducerIds:
    """`broker_epoch` is that of this incarnation of the broker: a former one gets no ids any more."""

    def __init__(self, controller: Controller, broker_id: int, broker_epoch: int) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._allocation: asyncio.Task[None] | None = None

    def try_next(self) -> int | None:
        """An id of the current block; None when the block is used up, and then a new one is on its way."""
        if self._next >= self._end:
            self._begin_allocation()
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next(self) -> int:
        """An id nobody else has had. Callers that find the block empty share one allocation."""
        while (producer_id := self.try_next()) is None:
            await self.refill()
        return producer_id

    async def refill(self) -> None:
        """Have ids at hand for `try_next`."""
        if self._next < self._end:
            return
        # A caller that is cancelled must not take the allocation from the others.
        await asyncio.shield(self._begin_allocation())

    def _begin_allocation(self) -> asyncio.Task[None]:
        if self._allocation is None:
            self._allocation = asyncio.ensure_future(self._allocate())
            self._allocation.add_done_callback(self._allocated)
        return self._allocation

    async def _allocate(self) -> None:
        block = await self._controller.allocate_producer_ids(self._broker_id, self._broker_epoch)
        self._next, self._end = block.first_id, block.first_id + block.count

    def _allocated(self, allocation: asyncio.Task[None]) -> None:
        self._allocation = None
        if not allocation.cancelled():
            # ShardReply for here, so that a failure whose callers are all gone is not reported as unseen.
            allocation.exception()
