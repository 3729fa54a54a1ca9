"""Cleaned segments as other clients' code reads them: the same records and producers."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.records.builder import COMMIT_MARKER
from barnabas.records.compression import CODECS

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # a warning about its own use of importlib.resources
    from kafka.record.memory_records import MemoryRecords

Row = tuple[int, int, bytes | None, bytes | None]


@pytest.fixture(params=["none", "gzip", "snappy", "lz4", "zstd"])
def cleaned(request: pytest.FixtureRequest, tmp_path: Path) -> CompactionBench:
    """A log with batches that lost some or all records, batches with a delete horizon, and markers."""
    bench = CompactionBench(tmp_path, replace(COMPACTED, segment_bytes=1 << 20))
    codec = CODECS[request.param]
    for number in range(20):
        rows = [(b"key-%d" % (number % 4 + place), b"%d" % number * 30) for place in range(4)]
        bench.put(*rows, compression=codec, producer_id=3, producer_epoch=1, base_sequence=4 * number)
        bench.clock.advance(7)
    bench.put((b"key-0", None), (b"kept", b"value"), compression=codec)
    bench.put((b"key-5", b"1"), producer_id=4, producer_epoch=0, base_sequence=0, transactional=True)
    bench.end_transaction(COMMIT_MARKER, 4)
    bench.put((b"key-5", b"2"), *[(b"key-%d" % number, b"last") for number in range(4, 7)])
    bench.clean()
    return bench


def ours(bench: CompactionBench) -> list[Row]:
    return [(record.offset, record.timestamp, record.key, record.value) for record in bench.all_records()]


@pytest.mark.parametrize(
    "cleaned", ["none", "gzip"], indirect=True
)  # the codecs that it supports without other packages
def test_kafka_python_reads_them(cleaned: CompactionBench) -> None:
    rows: list[Row] = []
    for segment in cleaned.log.segments[:-1]:
        records = MemoryRecords(segment.path(".log").read_bytes())
        while records.has_next():
            batch = records.next_batch()
            assert batch.validate_crc()
            if not batch.is_control_batch:
                rows += [(row.offset, row.timestamp, row.key, row.value) for row in batch]
    assert rows == ours(cleaned)
    assert len(rows) == 8


def test_aiokafka_reads_them(cleaned: CompactionBench) -> None:
    rows: list[Row] = []
    for header, data in cleaned.batches():
        batch = AiokafkaBatch(bytearray(data))
        assert batch.validate_crc()
        assert batch.next_offset == header.next_offset
        assert (batch.producer_id, batch.base_offset) == (header.producer_id, header.base_offset)
        if not batch.is_control_batch:
            rows += [(row.offset, row.timestamp, row.key, row.value) for row in batch]
    assert rows == ours(cleaned)


def test_the_log_has_batches_of_every_kind(cleaned: CompactionBench) -> None:
    headers = [header for header, _ in cleaned.batches()]
    assert any(header.count == 0 for header in headers)
    assert any(header.has_delete_horizon for header in headers)
    assert any(header.is_control for header in headers)
    assert any(0 < header.count < header.last_offset_delta + 1 for header in headers)
