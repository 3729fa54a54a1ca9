"""Disk and clock faults in a small Python process: each fault happens where it should, and ends."""

import errno
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.jepsen.shim import ALL_WRITES, Operation, Shim, lose_power

WALL_CLOCK_SLACK_SECONDS = 5.0
# Reads lines of Python from its input, and prints the value of each, or the errno it failed with.
CHILD = """
import asyncio, json, os, queue, shutil, sys, threading, time
for line in sys.stdin:
    try:
        try:
            value = eval(line)
        except SyntaxError:
            value = exec(line)
    except OSError as error:
        value = {"errno": error.errno}
    print(json.dumps(value), flush=True)
"""


class Child:
    """A Python process with a shim."""

    def __init__(self, directory: Path) -> None:
        self.shim = Shim(directory / "shim")
        self.data = directory / "data"
        self.data.mkdir()
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            cwd=self.data,
            env={**os.environ, **self.shim.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, line: str) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def restart(self) -> None:
        self.kill()
        self._start()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(tmp_path)
    yield child
    child.kill()


def failed(code: int) -> dict[str, int]:
    return {"errno": code}


OPEN = "f, g = [os.open(name, os.O_RDWR | os.O_CREAT) for name in ('file', '../elsewhere')]"
CALLS = {
    Operation.WRITE: [
        "os.write(f, b'abc')",
        "os.pwrite(f, b'abc', 0)",
        "os.writev(f, [b'ab', b'c'])",
        "os.pwritev(f, [b'ab', b'c'], 0)",
        "os.posix_fallocate(f, 0, 100)",
        "os.copy_file_range(g, f, 5)",
        "os.sendfile(f, g, 0, 5)",
    ],
    Operation.SYNC: ["os.fsync(f)", "os.fdatasync(f)"],
    Operation.CREATE: [
        "os.mkdir('directory')",
        "os.link('file', 'second name')",
        "open('other', 'w').close()",
        "open('another', 'x').close()",
    ],
    Operation.OPEN_TO_WRITE: ["open('file', 'a').close()", "os.close(os.open('file', os.O_RDWR))"],
    Operation.TRUNCATE: ["os.ftruncate(f, 10)", "os.truncate('file', 5)"],
    Operation.RENAME: ["os.rename('file', 'renamed')", "os.replace('renamed', 'file')"],
    Operation.UNLINK: ["os.unlink('file')", "os.rmdir('empty')"],
    Operation.READ: [
        "len(os.read(f, 1))",
        "len(os.pread(f, 1, 0))",
        "os.readv(f, [bytearray(2)])",
        "os.preadv(f, [bytearray(2)], 0)",
        "os.sendfile(g, f, 0, 5)",
        "os.copy_file_range(f, g, 5)",
    ],
}


@pytest.mark.parametrize("operation", CALLS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
def test_each_call_fails_with_the_error_and_works_again(
    child: Child, operation: Operation, code: int
) -> None:
    child(OPEN)
    child("os.mkdir('empty')")
    rule = child.shim.fail(operation, code, child.data)
    for number, call in enumerate(CALLS[operation], start=1):
        assert child(call) == failed(code), call
        assert rule.hits == number, call
    rule.heal()
    for call in CALLS[operation]:
        outcome = child(call)
        assert outcome is None or isinstance(outcome, int), call


@pytest.mark.parametrize("operation", CALLS, ids=lambda operation: operation.name)
def test_other_calls_do_not_fail(child: Child, operation: Operation) -> None:
    child(OPEN)
    child("os.mkdir('empty')")
    rule = child.shim.fail(~operation & Operation(255), errno.EIO, child.data)
    outcomes = [child(call) for call in CALLS[operation]]
    # A new file is also opened for writing.
    expected = [failed(errno.EIO)] * 2 if operation is Operation.CREATE else []
    assert [outcome for outcome in outcomes if isinstance(outcome, dict)] == expected
    assert rule.hits == len(expected)


def test_files_elsewhere_do_not_fail(child: Child, tmp_path: Path) -> None:
    (tmp_path / "data-2").mkdir()
    (child.data / "sub").mkdir()
    child.shim.fail(ALL_WRITES | Operation.READ, errno.EIO, child.data)
    assert child("open('../data-2/file', 'w').write('abc')") == 3
    assert child("open('../data-2/file').read()") == "abc"
    assert child("open('sub/file', 'w').write('abc')") == failed(errno.EIO)
    child.shim.heal()
    assert child("open('sub/file', 'w').write('abc')") == 3


def test_links_to_a_directory_lead_to_its_faults(child: Child, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(child.data)
    child.shim.fail(Operation.CREATE, errno.ENOSPC, child.data)
    assert child("os.mkdir('../link/new')") == failed(errno.ENOSPC)


def test_a_full_disk_takes_the_first_part_of_a_write(child: Child) -> None:
    child(OPEN)
    rule = child.shim.fail(Operation.WRITE | Operation.CREATE, errno.ENOSPC, child.data, room_bytes=10)
    assert child("os.write(f, b'123456')") == 6
    assert child("os.mkdir('works')") is None
    assert child("os.write(f, b'789abc')") == 4
    assert child("os.write(f, b'bc')") == failed(errno.ENOSPC)
    assert child("os.mkdir('directory')") == failed(errno.ENOSPC)
    rule.set_room(3)
    assert child("os.pwritev(f, [b'bc', b'def'], 10)") == 2
    rule.set_room(1)
    assert child("os.writev(f, [b'bc', b'def'])") == 1
    assert (child.data / "file").read_bytes() == b"123456789abc"
    assert rule.hits == 5


def test_a_fault_begins_after_some_calls_and_ends_after_others(child: Child) -> None:
    child(OPEN)
    child.shim.fail(Operation.SYNC, errno.EIO, child.data, skip=2, times=1)
    assert [child("os.fsync(f)") for _ in range(5)] == [None, None, failed(errno.EIO), None, None]


def test_a_slow_disk(child: Child) -> None:
    child(OPEN)
    with_rule = child.shim.delay(Operation.SYNC, 0.2, child.data)
    begin = time.monotonic()
    assert child("os.fsync(f)") is None
    assert time.monotonic() - begin >= 0.2
    with_rule.heal()
    assert with_rule.hits == 1


def test_faults_stay_when_the_process_is_started_again(child: Child) -> None:
    child.shim.fail(Operation.CREATE, errno.ENOSPC, child.data)
    child.restart()
    assert child("os.mkdir('directory')") == failed(errno.ENOSPC)


def test_only_so_many_faults_fit(child: Child) -> None:
    rules = [child.shim.fail(Operation.SYNC, errno.EIO, child.data) for _ in range(16)]
    with pytest.raises(RuntimeError, match="more than 16"):
        child.shim.fail(Operation.SYNC, errno.EIO, child.data)
    rules[3].heal()
    child.shim.fail(Operation.CREATE, errno.EROFS, child.data)
    assert child("os.mkdir('directory')") == failed(errno.EROFS)


# ---- clocks


@pytest.mark.parametrize("seconds", [60, -60, 86_400.5])
def test_the_wall_clock_is_wrong_and_durations_are_right(child: Child, seconds: float) -> None:
    before = child("time.monotonic()")
    child.shim.set_clock(seconds)
    wall = "[time.time(), time.time_ns() / 1e9, time.mktime(time.localtime()), time.clock_gettime(0)]"
    for shown in child(wall):
        assert abs(shown - seconds - time.time()) < WALL_CLOCK_SLACK_SECONDS
    assert 0 <= child("time.monotonic()") - before < WALL_CLOCK_SLACK_SECONDS
    child.shim.heal()
    assert abs(child("time.time()") - time.time()) < WALL_CLOCK_SLACK_SECONDS


@pytest.mark.parametrize(
    "wait",
    [
        "threading.Event().wait(0.1)",
        "(lock := threading.Lock()).acquire() and lock.acquire(timeout=0.1)",
        "time.sleep(0.1)",
        "asyncio.run(asyncio.sleep(0.1))",
        "str(type(exec('try: queue.Queue().get(timeout=0.1)\\nexcept queue.Empty: pass')))",
    ],
)
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_waits_are_as_long_as_before(child: Child, wait: str, seconds: int) -> None:
    child.shim.set_clock(seconds)
    begin = time.monotonic()
    child(wait)
    assert 0.1 <= time.monotonic() - begin < 2.0


def test_a_clock_that_jumps_to_and_fro(child: Child) -> None:
    child.shim.strobe_clock(100, period_seconds=0.02)
    seen: set[int] = set()
    deadline = time.monotonic() + 10
    while seen != {0, 100} and time.monotonic() < deadline:
        seen.add(round((child("time.time()") - time.time()) / 100) * 100)
    assert seen == {0, 100}


# ---- a loss of power


@pytest.fixture
def tracked(child: Child) -> Child:
    child.shim.track_syncs(child.data)
    return child


def content(child: Child) -> dict[str, bytes]:
    return {
        str(path.relative_to(child.data)): path.read_bytes()
        for path in sorted(child.data.rglob("*"))
        if path.is_file()
    }


def write(child: Child, name: str, data: bytes, *, sync: bool) -> None:
    child(f"f = os.open('{name}', os.O_WRONLY | os.O_CREAT | os.O_APPEND)")
    child(f"os.write(f, {data!r})")
    if sync:
        child("os.fsync(f)")
    child("os.close(f)")


def sync_directory(child: Child, name: str = ".") -> None:
    child(f"f = os.open('{name}', os.O_RDONLY | os.O_DIRECTORY)")
    child("os.fsync(f)")
    child("os.close(f)")


def test_what_was_not_synced_is_lost(tracked: Child) -> None:
    write(tracked, "half", b"kept", sync=True)
    write(tracked, "half", b"lost", sync=False)
    write(tracked, "never", b"lost as well", sync=False)
    write(tracked, "whole", b"kept", sync=True)
    tracked.kill()
    loss = lose_power(tracked.shim, tracked.data)
    assert content(tracked) == {"half": b"kept", "never": b"", "whole": b"kept"}
    assert loss.bytes_lost == {tracked.data / "half": 4, tracked.data / "never": 12}
    assert str(loss) == "lost 4 bytes of half, 12 bytes of never; undone: nothing"
    # After that, everything that is there is on disk.
    assert str(lose_power(tracked.shim, tracked.data)) == "lost no bytes; undone: nothing"


def test_what_was_there_before_is_kept(child: Child) -> None:
    write(child, "old", b"kept", sync=False)
    child.shim.track_syncs(child.data)
    write(child, "old", b" and appended", sync=False)
    child.kill()
    lose_power(child.shim, child.data)
    assert content(child) == {"old": b"kept and appended"}


def test_bytes_after_a_truncation_are_not_those_that_were_synced(tracked: Child) -> None:
    write(tracked, "file", b"0123456789", sync=True)
    child_lines = ("f = os.open('file', os.O_RDWR)", "os.ftruncate(f, 4)", "os.pwrite(f, b'other', 4)")
    for line in child_lines:
        tracked(line)
    write(tracked, "emptied", b"0123456789", sync=True)
    tracked("open('emptied', 'w').write('other')")
    tracked.kill()
    lose_power(tracked.shim, tracked.data)
    assert content(tracked) == {"file": b"0123", "emptied": b""}


def test_renames_and_removals_are_undone_unless_their_directory_was_synced(tracked: Child) -> None:
    for name in ("a", "b", "c", "new-b"):
        write(tracked, name, name.encode(), sync=True)
    tracked("os.mkdir('directory')")
    write(tracked, "directory/file", b"in it", sync=True)
    sync_directory(tracked)
    tracked("os.rename('new-b', 'b')")
    tracked("os.unlink('a')")
    tracked("shutil.rmtree('directory')")
    write(tracked, "a", b"of the same name", sync=True)
    tracked.kill()
    loss = lose_power(tracked.shim, tracked.data)
    before = {"a": b"a", "b": b"b", "c": b"c", "directory/file": b"in it", "new-b": b"new-b"}
    assert content(tracked) == before
    assert loss.undone == ["remove of directory", "remove of file", "remove of a", "rename of new-b"]


def test_renames_and_removals_stay_after_a_sync_of_their_directory(tracked: Child) -> None:
    for name in ("a", "b", "new-b"):
        write(tracked, name, name.encode(), sync=True)
    tracked("os.mkdir('directory')")
    write(tracked, "directory/file", b"in it", sync=True)
    tracked("os.rename('new-b', 'b')")
    tracked("os.unlink('a')")
    tracked("shutil.rmtree('directory')")
    assert tracked("os.unlink('a')") == failed(errno.ENOENT)
    assert tracked("os.rmdir('missing')") == failed(errno.ENOENT)
    sync_directory(tracked)
    tracked("os.rename('b', 'c')")
    tracked.kill()
    loss = lose_power(tracked.shim, tracked.data)
    assert content(tracked) == {"b": b"new-b"}
    assert loss.undone == ["rename of b"]


def test_with_chance_a_part_of_it_is_on_disk(tmp_path: Path) -> None:
    sizes, names = set(), set()
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        child = Child(tmp_path / str(seed))
        child.shim.track_syncs(child.data)
        write(child, "file", b"0123456789", sync=True)
        write(child, "file", b"0123456789", sync=False)
        child("os.rename('file', 'renamed')")
        child.kill()
        lose_power(child.shim, child.data, random.Random(seed))
        ((name, data),) = content(child).items()
        assert 10 <= len(data) <= 20
        sizes.add(len(data))
        names.add(name)
    assert len(sizes) > 2
    assert names == {"file", "renamed"}
