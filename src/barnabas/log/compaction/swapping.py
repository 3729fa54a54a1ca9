"""Replacing segments by rewritten ones, so that after a crash at any moment either all of the old or all of
the new ones are there.

New files are written as <file>.cleaned and renamed to .swap when they are complete and synced. Then the old
segments are renamed to .deleted, and the .swap suffix is removed. At the next start .cleaned files are
incomplete and are removed, together with .swap files at or above them. Other .swap files are complete: the
segments that they replace are removed, and they take their place."""

import logging
from pathlib import Path

from barnabas.log import names
from barnabas.log.disk import TEMPORARY, Disk
from barnabas.log.scan import Window, headers
from barnabas.log.segment import Segment
from barnabas.log.state import LogState

logger = logging.getLogger(__name__)

_TEMPORARY_SUFFIXES = (names.DELETED, names.CLEANED, names.SWAP, TEMPORARY)


def replace_segments(log: LogState, new: list[Segment], old: list[Segment]) -> None:
    """Replace `old`, adjacent segments of the log without the active one, by `new`.

    The files of `new` end in .cleaned, and are complete and synced. Producer snapshots at the start of
    removed segments are deleted."""
    try:
        _rename_all(log, new, names.CLEANED, names.SWAP)
        for segment in old:
            segment.release()
            for suffix in names.SEGMENT_SUFFIXES:
                log.trash.add_file(segment.path(suffix), log.config.file_delete_delay_ms)
        _rename_all(log, new, names.SWAP, "")
    except OSError as problem:
        raise log.storage_error(problem, fatal=True) from problem
    kept = {segment.base_offset for segment in new}
    for segment in old:
        if segment.base_offset not in kept:
            log.producers.delete_snapshot(segment.base_offset)
    before = [segment for segment in log.segments if segment.base_offset < old[0].base_offset]
    after = [segment for segment in log.segments if segment.base_offset > old[-1].base_offset]
    for segment, end in zip(new, [*(s.base_offset for s in new[1:]), after[0].base_offset], strict=True):
        segment.next_offset = end
    log.set_segments(before + new + after)
    log.save_corrupt_ranges()


def _rename_all(log: LogState, segments: list[Segment], old: str, new: str) -> None:
    # Begin with the highest offset: a start takes .swap files below a .cleaned file for complete.
    for segment in reversed(segments):
        segment.release()
        for suffix in reversed(names.SEGMENT_SUFFIXES):
            path = segment.path(suffix)
            log.disk.rename(path.with_name(path.name + old), path.with_name(path.name + new))
    log.disk.fsync_dir(log.directory)


def finish_interrupted_swaps(disk: Disk, directory: Path, listing: list[str]) -> list[str]:
    """Make the segments in a directory consistent after a crash; also removes files that were being deleted.

    `listing` is the content of the directory; returns its content afterwards."""
    if not any(name.endswith(_TEMPORARY_SUFFIXES) for name in listing):
        return listing
    files = {name: parsed for name in listing if (parsed := names.parse_offset_file(name))}
    cleaned = [parsed[0] for parsed in files.values() if parsed[2] == names.CLEANED]
    unfinished_from = min(cleaned, default=None)
    swaps: list[str] = []
    for name, (offset, _, pending) in files.items():
        if pending in (names.DELETED, names.CLEANED):
            disk.unlink(directory / name)
        elif pending == names.SWAP:
            if unfinished_from is not None and offset >= unfinished_from:
                disk.unlink(directory / name)
            else:
                swaps.append(name)
    if swaps:
        _install_swaps(disk, directory, swaps, list(files.items()))
    for name in listing:
        if name.endswith(TEMPORARY):
            disk.unlink(directory / name)
    return disk.listdir(directory)


def _install_swaps(
    disk: Disk, directory: Path, swaps: list[str], files: list[tuple[str, tuple[int, str, str]]]
) -> None:
    logs = [name for name in swaps if name.endswith(names.LOG + names.SWAP)]
    if logs:
        first = min(int(name[:20]) for name in logs)
        end = max(_next_offset(disk, directory / name) for name in logs)
        for name, (offset, kind, pending) in files:
            if not pending and kind != names.SNAPSHOT and first <= offset < end:
                logger.info("removing %s, which compaction has replaced", directory / name)
                disk.unlink(directory / name)
    for name in swaps:
        disk.rename(directory / name, directory / name.removesuffix(names.SWAP))
    disk.fsync_dir(directory)


def _next_offset(disk: Disk, path: Path) -> int:
    file = disk.open(path)
    end = int(path.name[:20])
    for _, header in headers(Window(disk, file, disk.size(file.fd)), 0, []):
        end = header.next_offset
    return max(end, int(path.name[:20]) + 1)
