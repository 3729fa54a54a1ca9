"""Runs of valid batches, compiled and interpreted: the same results as examining batch by batch."""

import tempfile
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted
from tests.unit.records.stamping import stamp

from barnabas.config.topic import TopicConfig
from barnabas.kernels import recovery as compiled
from barnabas.log.disk import RealDisk
from barnabas.log.rebuild import Examination, examine
from barnabas.log.scan import Verifier
from barnabas.log.segment import Segment
from barnabas.records.builder import build_batch

LIMIT = 2**31


plain = interpreted(compiled)


@st.composite
def logs(draw: st.DrawFn) -> bytearray:
    """Batches in order, sometimes with a gap, another epoch, an older time or a producer; then damage."""
    data, offset, epoch = bytearray(), 0, 0
    for _ in range(draw(st.integers(0, 12))):
        count, gap, term = draw(st.tuples(st.integers(1, 4), st.sampled_from([0] * 9 + [3]), st.booleans()))
        epoch += draw(st.sampled_from([0] * 9 + [1, -1])) if term else 0
        timestamp, producer_id = draw(st.tuples(st.integers(-1, 50), st.sampled_from([-1, -1, 7])))
        values = [(timestamp, None, b"v" * 20, [])] * count
        batch = bytearray(build_batch(values, producer_id=producer_id, producer_epoch=0, base_sequence=0))
        stamp(memoryview(batch), 0, offset + gap, epoch)
        data += batch
        offset += gap + count
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    return data[: len(data) - draw(st.sampled_from([0, 0, 0, 1, 70]))] if data else data


@given(
    logs(),
    st.tuples(st.integers(-2, 3), st.integers(-1, 2), st.sampled_from([LIMIT, 5])),
    st.tuples(st.sampled_from([1, 200]), st.integers(0, 300), st.integers(-1, 30), st.just(0)),
)
def test_both_forms_find_the_same_run(
    data: bytearray, known: tuple[int, int, int], marks: tuple[int, int, int, int]
) -> None:
    view = memoryview(data)
    assert compiled.sound_run(view, 1000, *known, *marks, crc32c) == plain.sound_run(
        view, 1000, *known, *marks, crc32c
    )


def test_a_run_ends_before_a_batch_that_is_cut_off() -> None:
    batch = bytearray(build_batch([(5, None, b"value", [])]))
    stamp(memoryview(batch), 0, 0, 0)
    run = compiled.sound_run(memoryview(batch + batch[:-1]), 0, -1, 0, LIMIT, 4096, 0, -1, 0, crc32c)
    assert run == (len(batch), 0, 5, 0, False, [])
    for size in range(len(batch)):
        short = compiled.sound_run(memoryview(batch[:size]), 0, -1, 0, LIMIT, 4096, 0, -1, 0, crc32c)
        assert short[0] == 0


def _examine(path: Path, interval: int, *, gaps: bool, last: bool) -> Examination:
    config = TopicConfig(index_interval_bytes=interval)
    segment = Segment(RealDisk(), path, 0, config, 0)
    segment.open()
    result = examine(segment, 60, gaps=gaps, last=last)
    segment.release()
    return result


@given(logs(), st.sampled_from([1, 150, 400]), st.booleans(), st.booleans())
def test_an_examination_is_the_same_with_runs_and_without(
    data: bytearray, interval: int, gaps: bool, last: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        path = Path(directory)
        (path / f"{0:020d}.log").write_bytes(data)
        with_runs = _examine(path, interval, gaps=gaps, last=last)
        patch.setattr(Verifier, "run", lambda *_: None)
        assert with_runs == _examine(path, interval, gaps=gaps, last=last)
