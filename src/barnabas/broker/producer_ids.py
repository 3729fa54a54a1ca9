"""Producer ids of this broker: given out from blocks that it gets from the controller.

Ids that are left in a block when the broker stops are never used. Owned by the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.wire.messages import allocate_producer_ids
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# Clients wait meanwhile; after an error they try again.
ALLOCATE_SECONDS_MAX = 10.0


class ProducerIds:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
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
        # The controller refuses an earlier start of this broker.
        request = AllocateProducerIdsRequest(
            broker_id=self._broker.id, broker_epoch=self._broker.metadata.broker_epoch
        )
        block: AllocateProducerIdsResponse = await self._broker.controller_channel.send(
            allocate_producer_ids.API_KEY, request, within_seconds=ALLOCATE_SECONDS_MAX
        )
        if block.error_code != ErrorCode.NONE:
            raise KafkaError(error_of(block.error_code))
        self._next = block.producer_id_start
        self._end = block.producer_id_start + block.producer_id_len

    def _allocated(self, allocation: asyncio.Task[None]) -> None:
        self._allocation = None
        if not allocation.cancelled():
            # Reading the exception keeps asyncio from warning about it if no caller waits any more.
            allocation.exception()
