"""Which epoch wrote which offsets, by Kafka's rules."""

from pathlib import Path

import pytest

from barnabas.log.disk import RealDisk
from barnabas.log.leader_epochs import LeaderEpochs

UNKNOWN = (-1, -1)


def _epochs(directory: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(RealDisk(), directory)
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def test_the_checkpoint_is_kafkas(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (0, 0), (3, 17))
    assert not (tmp_path / "leader-epoch-checkpoint").exists()
    epochs.save()
    assert epochs.unsaved() is None
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n3 17\n"
    again = LeaderEpochs(RealDisk(), tmp_path)
    assert again.loaded and again.entries == epochs.entries


def test_a_save_that_comes_late_does_not_undo_a_later_one(tmp_path: Path) -> None:
    """A flush writes the file in a thread, while a truncation writes it here."""
    epochs = _epochs(tmp_path, (0, 0), (3, 17))
    late = epochs.unsaved()
    assert late is not None
    epochs.truncate_from_end(17)
    late.run()
    assert LeaderEpochs(RealDisk(), tmp_path).entries == [(0, 0)]
    epochs.assign(4, 20)
    assert LeaderEpochs(RealDisk(), tmp_path).entries == [(0, 0)]
    again = epochs.unsaved()
    assert again is not None
    again.run()
    assert LeaderEpochs(RealDisk(), tmp_path).entries == [(0, 0), (4, 20)]
    assert epochs.unsaved() is None


def test_a_save_that_comes_after_the_log_was_deleted_writes_nothing(tmp_path: Path) -> None:
    """By then the directory may be that of a new topic with the same name."""
    epochs = _epochs(tmp_path, (0, 0), (3, 17))
    late = epochs.unsaved()
    assert late is not None
    epochs.retire()
    late.run()
    assert list(tmp_path.iterdir()) == []


def test_a_new_epoch_drops_what_it_contradicts(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (0, 0), (1, 10), (2, 20), (3, 15))
    assert epochs.entries == [(0, 0), (1, 10), (3, 15)]
    epochs.assign(1, 12)
    assert epochs.entries == [(0, 0), (1, 12)]
    assert not epochs.assign(1, 30)
    with pytest.raises(ValueError, match="not a valid entry"):
        epochs.assign(-1, 5)


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, UNKNOWN), (0, (0, 5)), (1, (1, 10)), (2, (2, 20)), (3, (2, 20)), (4, (4, 33)), (5, UNKNOWN)],
)
def test_end_offsets(tmp_path: Path, epoch: int, answer: tuple[int, int]) -> None:
    """Epoch 0 is older than all known epochs: it ends where they begin. Epoch 3 wrote nothing here."""
    epochs = _epochs(tmp_path, (1, 5), (2, 10), (4, 20))
    assert epochs.end_offset_for(epoch, 33) == answer


def test_an_empty_cache_has_no_end_offsets(tmp_path: Path) -> None:
    assert _epochs(tmp_path).end_offset_for(0, 10) == UNKNOWN


def test_truncation_from_both_ends(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (1, 5), (2, 10), (4, 20))
    epochs.truncate_from_end(20)
    assert epochs.entries == [(1, 5), (2, 10)]
    epochs.truncate_from_start(12)
    assert epochs.entries == [(2, 12)]
    epochs.truncate_from_start(3)
    assert epochs.entries == [(2, 12)]
    assert LeaderEpochs(RealDisk(), tmp_path).entries == [(2, 12)]
    epochs.clear()
    assert LeaderEpochs(RealDisk(), tmp_path).entries == []


def test_the_epoch_of_an_offset(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (1, 5), (4, 20))
    assert [epochs.epoch_at(offset) for offset in (4, 5, 19, 20, 99)] == [-1, 1, 1, 4, 4]


@pytest.mark.parametrize("content", [b"0\n1\na b\n", b"0\n1\n-5 3\n", b"junk"])
def test_a_damaged_checkpoint_is_not_used(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_bytes(content)
    epochs = LeaderEpochs(RealDisk(), tmp_path)
    assert not epochs.loaded and epochs.entries == []
