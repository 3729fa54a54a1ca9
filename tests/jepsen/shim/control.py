"""The test's side of the control file; its layout is that of control.h."""

import enum
import mmap
import os
import struct
import threading
from pathlib import Path

from tests.jepsen.shim.building import library

RULES_MAX, PATH_BYTES = 16, 448
NS_PER_SECOND = 1_000_000_000
CLOCK = struct.Struct("<qqq")
HAS_RULES_AT = CLOCK.size
TRACKED_AT = HAS_RULES_AT + 8
JOURNAL_AT = TRACKED_AT + PATH_BYTES
GRAVEYARD_AT = JOURNAL_AT + PATH_BYTES
RULES_AT = GRAVEYARD_AT + PATH_BYTES
INT32, INT64 = struct.Struct("<i"), struct.Struct("<q")
# is_active, operations, error, unused; skip, times, room_bytes, delay_ns, hits; below
RULE = struct.Struct(f"<iIiiqqqqq{PATH_BYTES}s")
ROOM_AT, HITS_AT = 16 + 2 * 8, 16 + 4 * 8


class Operation(enum.IntFlag):
    """Kinds of system calls; those of control.h."""

    WRITE = 1
    SYNC = 2
    CREATE = 4
    OPEN_TO_WRITE = 8
    TRUNCATE = 16
    RENAME = 32
    UNLINK = 64
    READ = 128


ALL_WRITES = ~Operation.READ & Operation(255)


class Shim:
    """The faults of one process. Its files are in `directory`, which must be on the disk of the data that is
    tracked. The process may be started several times; faults stay."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.journal = directory / "journal"
        self.graveyard = directory / "graveyard"
        self._file = directory / "control"
        self._lock = threading.Lock()
        self.graveyard.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(bytes(RULES_AT + RULES_MAX * RULE.size))
        with self._file.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), 0)
        self._write_path(JOURNAL_AT, self.journal.absolute())
        self._write_path(GRAVEYARD_AT, self.graveyard.absolute())

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which the process must be started."""
        return {"LD_PRELOAD": str(library()), "BARNABAS_SHIM_CONTROL": str(self._file.absolute())}

    # ---- the disk

    def fail(
        self,
        operations: Operation,
        code: int,
        below: Path,
        *,
        skip: int = 0,
        times: int | None = None,
        room_bytes: int | None = None,
    ) -> "Rule":
        """From now on these calls fail with `code`, an errno, for files below a directory: after `skip` calls
        that pass, and `times` times. With `room_bytes`, writes store so much before they fail, the last of
        them only a part."""
        limits = (skip, -1 if times is None else times, -1 if room_bytes is None else room_bytes, 0)
        return self._add(operations, code, below, limits)

    def delay(self, operations: Operation, seconds: float, below: Path) -> "Rule":
        """From now on these calls take so much longer."""
        return self._add(operations, 0, below, (0, -1, -1, int(seconds * NS_PER_SECOND)))

    def _add(self, operations: Operation, code: int, below: Path, limits: tuple[int, ...]) -> "Rule":
        with self._lock:
            free = [index for index in range(RULES_MAX) if not self._number(INT32, _place(index))]
            if not free:
                raise RuntimeError(f"a process cannot have more than {RULES_MAX} disk faults at a time")
            place = _place(free[0])
            path = _encoded(below.resolve())
            RULE.pack_into(self._control, place, 0, operations, code, 0, *limits, 0, path)
            # Last, so that the process never sees half a rule.
            INT32.pack_into(self._control, place, 1)
            INT32.pack_into(self._control, HAS_RULES_AT, 1)
        return Rule(self, place)

    def remove_rule(self, place: int) -> None:
        with self._lock:
            INT32.pack_into(self._control, place, 0)
            active = any(self._number(INT32, _place(index)) for index in range(RULES_MAX))
            INT32.pack_into(self._control, HAS_RULES_AT, int(active))

    def read_number(self, place: int) -> int:
        return self._number(INT64, place)

    def write_number(self, place: int, value: int) -> None:
        INT64.pack_into(self._control, place, value)

    # ---- the clock

    def set_clock(self, offset_seconds: float) -> None:
        """The wall clock is wrong by so much; durations are not."""
        CLOCK.pack_into(self._control, 0, int(offset_seconds * NS_PER_SECOND), 0, 0)

    def strobe_clock(self, offset_seconds: float, period_seconds: float) -> None:
        """The wall clock jumps to and fro: for one period it is right, for the next wrong by so much."""
        numbers = (int(offset_seconds * NS_PER_SECOND), int(period_seconds * NS_PER_SECOND))
        CLOCK.pack_into(self._control, 0, 0, *numbers)

    # ---- all

    def track_syncs(self, data_dir: Path) -> None:
        """From now on record what is synced below this directory, for lose_power."""
        self._write_path(TRACKED_AT, data_dir.resolve())

    def heal(self) -> None:
        """End all faults; what is tracked stays so."""
        self.set_clock(0)
        for index in range(RULES_MAX):
            self.remove_rule(_place(index))

    def _number(self, kind: struct.Struct, place: int) -> int:
        (number,) = kind.unpack_from(self._control, place)
        return int(number)

    def _write_path(self, place: int, path: Path) -> None:
        self._control[place : place + PATH_BYTES] = _encoded(path).ljust(PATH_BYTES, b"\0")


class Rule:
    """One disk fault of one process, until heal()."""

    def __init__(self, shim: Shim, place: int) -> None:
        self._shim = shim
        self._place = place

    @property
    def hits(self) -> int:
        """How many calls it has failed, cut short or delayed."""
        return self._shim.read_number(self._place + HITS_AT)

    def set_room(self, room_bytes: int) -> None:
        """Writes get so much from now on."""
        self._shim.write_number(self._place + ROOM_AT, room_bytes)

    def heal(self) -> None:
        self._shim.remove_rule(self._place)


def _place(index: int) -> int:
    return RULES_AT + index * RULE.size


def _encoded(path: Path) -> bytes:
    data = os.fsencode(path)
    if len(data) >= PATH_BYTES:
        raise ValueError(f"the path is longer than {PATH_BYTES - 1} bytes: {path}")
    return data
