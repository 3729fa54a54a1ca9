"""Copies one partition into files. Batches are written as they are in the log; those of aborted transactions
and markers are left out."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import BinaryIO

from barnabas.cli.backup.contents import Chunk, PartitionCopy, Place, progress_file
from barnabas.cli.backup.parallel import Advance
from barnabas.client import Admin
from barnabas.client.admin.types import OffsetSpec
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.records.batch import read_header
from barnabas.records.record_set import RecordSet

# A file is complete when it has this many bytes: what an interrupted backup has to read again at most.
CHUNK_BYTES = 64 << 20
FETCH_BYTES = 4 << 20


class PartitionBackup:
    def __init__(self, admin: Admin, place: Place, partition: TopicPartition, copy: PartitionCopy) -> None:
        self._admin = admin
        self._place = place
        self._partition = partition
        self._copy = copy

    def resume(self) -> None:
        """Take over what an interrupted backup has completed."""
        data = self._place.read(progress_file(self._partition))
        if data is not None:
            self._copy.chunks = [Chunk(**each) for each in json.loads(data)]

    def run(self, advance: Advance) -> None:
        """`advance` is called with the number of offsets that are done."""
        batches = self._batches(advance)
        first = next(batches, None)
        while first is not None:
            with ExitStack() as stack:
                offset = max(read_header(first).base_offset, self._copy.start)
                name = f"topics/{self._partition.topic}/{self._partition.partition}/{offset:020}.log"
                writer = _ChunkWriter(name, offset, stack.enter_context(self._place.writing(name)))
                while first is not None and writer.size < CHUNK_BYTES:
                    writer.add(first)
                    first = next(batches, None)
            self._copy.chunks.append(writer.chunk())
            progress = json.dumps([asdict(chunk) for chunk in self._copy.chunks]).encode()
            self._place.write(progress_file(self._partition), progress)

    def _batches(self, advance: Advance) -> Iterator[memoryview]:
        offset = self._copy.next_offset
        advance(offset - self._copy.start)
        while offset < self._copy.end:
            try:
                read = self._admin.read_batches(self._partition, offset, bytes_max=FETCH_BYTES)
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                reached = self._first_offset()
                advance(reached - offset)
                offset = reached
                continue
            batches = RecordSet(
                read.records, offset, read.aborted, read_committed=True, source=str(self._partition)
            )
            for batch in batches.batches():
                if read_header(batch).base_offset >= self._copy.end:
                    break
                yield batch
            reached = min(batches.end_offset(), self._copy.end)
            advance(reached - offset)
            offset = reached

    def _first_offset(self) -> int:
        """Retention has deleted what we would have read next: go on with what is left."""
        listed = self._admin.list_offsets({self._partition: OffsetSpec.EARLIEST})
        return min(listed[self._partition].offset, self._copy.end)


class _ChunkWriter:
    def __init__(self, name: str, first_offset: int, file: BinaryIO) -> None:
        self._name = name
        self._first_offset = first_offset
        self._next_offset = first_offset
        self._file = file
        self._digest = hashlib.sha256()
        self._records = 0
        self.size = 0

    def add(self, batch: memoryview) -> None:
        header = read_header(batch)
        self._file.write(batch)
        self._digest.update(batch)
        self.size += len(batch)
        self._records += header.count
        self._next_offset = header.next_offset

    def chunk(self) -> Chunk:
        return Chunk(
            self._name,
            self._first_offset,
            self._next_offset,
            self._records,
            self.size,
            self._digest.hexdigest(),
        )
