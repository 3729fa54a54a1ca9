"""Producer ids of this broker: given out from blocks that the controller reserves in the metadata log.

Ids that are left in a block when the broker stops are never used. Owned by the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.metadata.controller import Controller


class ProducerIds:
    """`broker_epoch` is the epoch of this start of the broker. An older one gets no more ids."""

    def __init__(self, controller: Controller, broker_id: int, broker_epoch: int) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._allocation: asyncio.Task[None] | None = None

    def try_next(self) -> int | None:
        """An id of the current block. None if the block is used up; then a new one is requested."""
        if self._next >= self._end:
            self._begin_allocation()
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next(self) -> int:
        """A new producer id. Callers that wait for a block share one allocation."""
        while (producer_id := self.try_next()) is None:
            await self.refill()
        return producer_id

    async def refill(self) -> None:
        """Wait until `try_next` has an id to give."""
        if self._next < self._end:
            return
        # A caller that is cancelled must not cancel the allocation for the others.
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
            # Reading the exception keeps asyncio from warning about it if no caller waits any more.
            allocation.exception()
