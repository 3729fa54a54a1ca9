"""Which segments have their files open, and whose are closed when there are too many. Pure bookkeeping.

A segment opens its files when they are first used. When the descriptors are more than `most`, files that were
not used since the last look are closed, those that were opened longest ago first."""

from typing import Protocol

DESCRIPTORS_MOST = 500


class Keeper(Protocol):
    """Something that opens files when it needs them and can do without them in between."""

    def was_used(self) -> bool:
        """Whether the files were used since this was last asked."""

    def close_files(self) -> None:
        """Close them and say so with OpenFiles.closed; those that somebody else holds may stay."""


class OpenFiles:
    def __init__(self, most: int = DESCRIPTORS_MOST) -> None:
        self.most = most
        self._kept: dict[Keeper, int] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many descriptors are open."""
        return self._count

    def opened(self, keeper: Keeper, descriptors: int) -> None:
        """The keeper has so many descriptors from now on; its own are never closed by this call."""
        self._count += descriptors - self._kept.pop(keeper, 0)
        self._kept[keeper] = descriptors
        if self._count > self.most:
            self._make_room(keeper)

    def closed(self, keeper: Keeper) -> None:
        self._count -= self._kept.pop(keeper, 0)

    def _make_room(self, newest: Keeper) -> None:
        # Once around forgets who was used before, so the second time around somebody goes.
        for _ in range(2 * len(self._kept)):
            if self._count <= self.most:
                return
            oldest = next(iter(self._kept))
            self._kept[oldest] = self._kept.pop(oldest)
            if oldest is not newest and not oldest.was_used():
                oldest.close_files()
