"""Files and directories are removed when they are due, unless their directory was removed before."""

from pathlib import Path

import pytest

from barnabas.clock import FakeClock
from barnabas.log.disk import RealDisk
from barnabas.log.trash import Trash


def make(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_files_and_directories_are_removed_when_they_are_due(tmp_path: Path) -> None:
    clock = FakeClock()
    trash = Trash(RealDisk(), clock)
    soon, late = make(tmp_path / "a-0" / "0.log"), make(tmp_path / "a-0" / "1.log")
    trash.add_file(soon, 1000)
    trash.add_file(late, 5000)
    make(tmp_path / "b-0.delete" / "0.log")
    trash.add_directory(tmp_path / "b-0.delete", 1000)
    assert len(trash) == 3
    assert trash.empty() == 0
    clock.advance(1000)
    assert trash.empty() == 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["1.log.deleted", "a-0"]
    assert trash.empty(all_now=True) == 1
    assert len(trash) == 0


def test_only_files_of_a_removed_directory_are_forgotten(tmp_path: Path) -> None:
    trash = Trash(RealDisk(), FakeClock())
    gone, kept = make(tmp_path / "a-0" / "0.log"), make(tmp_path / "a-01" / "0.log")
    trash.add_file(gone, 0)
    trash.add_file(kept, 0)
    trash.forget_below(tmp_path / "a-0")
    assert trash.empty() == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["0.log.deleted", "a-0", "a-01"]


@pytest.mark.timeout(60)
def test_deleting_thousands_of_directories_does_not_look_at_all_others_each_time(tmp_path: Path) -> None:
    trash = Trash(RealDisk(), FakeClock())
    for number in range(8000):
        trash.forget_below(tmp_path / f"a-{number}")
        trash.add_directory(tmp_path / f"a-{number}.delete", 0)
    assert len(trash) == 8000
