"""Follows the metadata log: applies its records to the image, and calls listeners in order.

Every broker has one. `image` is always complete and never goes back. Listeners are called on the event
loop, in the order they subscribed, before callers that wait for that image continue. If a listener fails,
the error is logged and the other listeners are still called."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replaying import start_and_records
from barnabas.metadata.store import Cancel, MetadataStore, Update

logger = logging.getLogger(__name__)

ImageListener: TypeAlias = Callable[[MetadataImage, MetadataImage, Difference], None]


class Follower:
    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._listeners: list[ImageListener] = []
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[MetadataImage]]] = []
        self._cancel: Cancel | None = None
        self.image = MetadataImage(cluster_id=store.cluster_id)

    async def start(self) -> None:
        """Apply the whole log, then follow it. Earlier listeners get the whole log as one change."""
        self._cancel = await self._store.watch(self.image.offset, self._take)

    def stop(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        for _, waiter in self._waiting:
            waiter.cancel()
        self._waiting.clear()

    def listen(self, listener: ImageListener) -> Cancel:
        """Call `listener(old, new, difference)` for each change from now on."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def reached(self, offset: int) -> MetadataImage:
        """Wait for an image that includes all records below `offset`."""
        return await self.until(lambda image: image.offset >= offset)

    async def until(self, predicate: Callable[[MetadataImage], bool]) -> MetadataImage:
        """Wait for an image for which `predicate` is true."""
        if predicate(self.image):
            return self.image
        waiter: asyncio.Future[MetadataImage] = asyncio.get_running_loop().create_future()
        entry = (predicate, waiter)
        self._waiting.append(entry)
        try:
            return await waiter
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    def _take(self, updates: Sequence[Update]) -> None:
        old = self.image
        start, records = start_and_records(old, updates)
        if start is old:
            new, difference = old.apply_and_compare(records)
        else:
            new = start.apply(records)
            difference = new.difference(old)
        self._publish(old, new, difference)

    def _publish(self, old: MetadataImage, new: MetadataImage, difference: Difference) -> None:
        self.image = new
        for listener in list(self._listeners):
            try:
                listener(old, new, difference)
            except Exception:
                logger.exception("a listener failed at the metadata change up to offset %d", new.offset)
        still_waiting = []
        for predicate, waiter in self._waiting:
            if waiter.done():
                continue
            if predicate(new):
                waiter.set_result(new)
            else:
                still_waiting.append((predicate, waiter))
        self._waiting = still_waiting
