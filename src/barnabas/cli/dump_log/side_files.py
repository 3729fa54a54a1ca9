"""Prints the small files of a log: aborted transactions, and the state of producers."""

from pathlib import Path

from barnabas.cli.failures import ToolError
from barnabas.log.disk import RealDisk
from barnabas.log.errors import CorruptSnapshotError
from barnabas.log.producer_snapshot import decode_snapshot
from barnabas.log.producers import ProducerEntry
from barnabas.log.txn_index import VERSION, TransactionIndex


def dump_transaction_index(path: Path) -> None:
    if not path.exists():
        raise ToolError(f"{path}: the file does not exist.")
    entries = TransactionIndex(RealDisk(), path).entries()
    if entries is None:
        raise ToolError(f"{path} is corrupt. If you delete it, the broker rebuilds it.")
    for entry in entries:
        print(
            f"version: {VERSION} producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def dump_snapshot(path: Path) -> None:
    try:
        entries = decode_snapshot(path.read_bytes())
    except CorruptSnapshotError as error:
        raise ToolError(f"{path} is corrupt: {error}. If you delete it, the broker rebuilds it.") from error
    for entry in entries.values():
        print(_producer_line(entry))


def _producer_line(entry: ProducerEntry) -> str:
    first = entry.transaction_first_offset
    open_since = f"OptionalLong[{first}]" if first >= 0 else "OptionalLong.empty"
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {open_since} "
        f"lastTimestamp: {entry.last_timestamp}"
    )
    if not entry.batches:
        return line
    last = entry.batches[-1]
    return (
        f"{line} firstSequence: {last.first_sequence} lastSequence: {last.last_sequence} "
        f"lastOffset: {last.last_offset} offsetDelta: {last.offset_delta} timestamp: {last.timestamp}"
    )
