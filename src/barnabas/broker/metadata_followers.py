"""Brings each change of the metadata to the parts of the broker that depend on it, in a fixed order.

Each follower is guarded by itself: when one raises, the others still get the change, the failure is logged
and counted, and the failed follower is tried again with the newest image, first after a second and then
after longer and longer pauses. It then gets the difference from the last image it has taken, so it misses
nothing. The followers after it may depend on it, so they get the change once more at that time. A follower
must therefore accept the same change twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
RETRY_SECONDS_MAX = 60.0

Apply: TypeAlias = Callable[[MetadataImage, Difference], None]


@dataclass(slots=True)
class _Follower:
    name: str
    apply: Apply
    # The last image that this follower, and all before it, have taken without an error.
    taken: MetadataImage


class MetadataFollowers:
    """`image` is the one that all followers know already when they are added."""

    def __init__(self, image: MetadataImage, retry_seconds: float = RETRY_SECONDS) -> None:
        self._image = image
        self._retry_seconds_min = self._retry_seconds = retry_seconds
        self._followers: list[_Follower] = []
        self._retry_timer: asyncio.TimerHandle | None = None
        # Both are read by /metrics.
        self.failures = 0
        self.behind: list[str] = []

    def add(self, name: str, apply: Apply) -> None:
        """Call `apply(image, difference)` for each change, after the followers that were added before."""
        self._followers.append(_Follower(name, apply, self._image))

    def follow(self, old: MetadataImage, new: MetadataImage, difference: Difference) -> None:
        """Take a new image; called by the metadata node."""
        self._image = new
        self.behind = []
        for follower in self._followers:
            missed = difference if follower.taken is old else new.difference(follower.taken)
            self._apply(follower, new, missed)
        if self.behind:
            self._retry_later()
        else:
            self._retry_seconds = self._retry_seconds_min

    def close(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()

    def _apply(self, follower: _Follower, image: MetadataImage, difference: Difference) -> None:
        try:
            follower.apply(image, difference)
        except Exception:
            self.failures += 1
            self.behind.append(follower.name)
            logger.exception(
                "%s could not take the metadata up to offset %d; next try in %g s",
                follower.name,
                image.offset,
                self._retry_seconds,
            )
        else:
            if not self.behind:
                follower.taken = image

    def _retry_later(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        self._retry_timer = asyncio.get_running_loop().call_later(self._retry_seconds, self._retry)
        self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS_MAX)

    def _retry(self) -> None:
        """Offer the newest image to all; those that have taken it already get an empty difference."""
        self.follow(self._image, self._image, Difference())
