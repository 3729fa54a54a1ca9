"""Which segments have open files, and which files to close when there are too many. No I/O.

A segment opens its files when they are first used. When there are more than `most` descriptors, files that
were not used since the last check are closed, beginning with those that were opened first."""

from typing import Protocol

DESCRIPTORS_MOST = 500


class Keeper(Protocol):
    """An object that opens its files when it needs them and can close them in between."""

    def was_used(self) -> bool:
        """Whether the files were used since the last call."""

    def close_files(self) -> None:
        """Close the files and call OpenFiles.closed; files that have readers may stay open."""


class OpenFiles:
    def __init__(self, most: int = DESCRIPTORS_MOST) -> None:
        self.most = most
        self._kept: dict[Keeper, int] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many descriptors are open."""
        return self._count

    def opened(self, keeper: Keeper, descriptors: int) -> None:
        """From now on the keeper has this many descriptors. This call never closes them."""
        self._count += descriptors - self._kept.pop(keeper, 0)
        self._kept[keeper] = descriptors
        if self._count > self.most:
            self._make_room(keeper)

    def closed(self, keeper: Keeper) -> None:
        self._count -= self._kept.pop(keeper, 0)

    def _make_room(self, newest: Keeper) -> None:
        # The first pass clears the marks of use, so the second pass finds something to close.
        for _ in range(2 * len(self._kept)):
            if self._count <= self.most:
                return
            oldest = next(iter(self._kept))
            self._kept[oldest] = self._kept.pop(oldest)
            if oldest is not newest and not oldest.was_used():
                oldest.close_files()
