"""What the logs hold: everything that was acknowledged, once, at one offset, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from tests.jepsen.checker.actions import Action, Outcome
from tests.jepsen.checker.evidence import Evidence, Write
from tests.jepsen.checker.verdict import Finding, Kind


def check_contents(evidence: Evidence) -> Iterator[Finding]:
    yield from _missing_values(evidence)
    yield from _torn_transactions(evidence)
    yield from _values_in_wrong_places(evidence)
    for unsent in evidence.unsent.values():
        write = evidence.writes.get(unsent.value)
        senders = [write.action.last] if write else []
        text = f"value {unsent.value} was read at offset {unsent.offset}, but " + (
            f"it was sent to {write.key}" if write else "nobody sent it"
        )
        yield Finding(Kind.UNSENT_READ, unsent.key, text, [*senders, unsent.reader.last])


# ---- what is missing


def _missing_values(evidence: Evidence) -> Iterator[Finding]:
    for write in evidence.writes.values():
        if write.reader or write.outcome is not Outcome.COMMITTED:
            continue
        sender = write.action.last
        passing_reader = _reader_beyond(evidence, write)
        if passing_reader:
            beyond = evidence.logs[write.key].highest_read
            text = f"{_acknowledged(write)}, but nobody ever read it, while offset {beyond} was read"
            yield Finding(Kind.LOST_WRITE, write.key, text, [sender, passing_reader.last])
        elif evidence.rules.read_to_end:
            text = f"{_acknowledged(write)}, but nobody ever read it"
            yield Finding(Kind.UNSEEN, write.key, text, [sender])


def _acknowledged(write: Write) -> str:
    place = "an unknown offset" if write.offset is None else f"offset {write.offset}"
    return f"value {write.value} was acknowledged at {place}"


def _reader_beyond(evidence: Evidence, write: Write) -> Action | None:
    """Somebody who read a higher offset, if the offset of the value is known."""
    log = evidence.logs[write.key]
    if write.offset is None or write.offset >= log.highest_read:
        return None
    return log.readers[log.highest_read]


def _torn_transactions(evidence: Evidence) -> Iterator[Finding]:
    """If a record of a transaction was read, then it was committed, also if its client does not know, and its
    other records must be there as well."""
    if not evidence.rules.read_committed:
        return
    for action in evidence.actions:
        if not action.is_transaction or action.outcome is not Outcome.UNKNOWN:
            continue
        writes = [evidence.writes[value] for _, value, _, _ in action.sends()]
        seen = [write for write in writes if write.reader]
        missing = [write for write in writes if not write.reader]
        if not evidence.rules.read_to_end:
            missing = [write for write in missing if _reader_beyond(evidence, write)]
        if seen and missing:
            text = (
                f"an unknown transaction was committed, because its {_values(seen[:1])} was read, "
                f"but nobody ever read its {_values(missing)}"
            )
            readers = [write.reader.last for write in seen if write.reader]
            yield Finding(Kind.TORN_TRANSACTION, missing[0].key, text, [action.last, readers[0]])


def _values(writes: list[Write]) -> str:
    return ", ".join(f"value {write.value} of {write.key}" for write in writes)


# ---- what is in the wrong place


def _values_in_wrong_places(evidence: Evidence) -> Iterator[Finding]:
    """Two values at one offset, and one value at two offsets."""
    other_values: dict[tuple[str, int], dict[int, Action]] = {}
    other_offsets: dict[int, dict[int, Action]] = {}
    for key, offset, value, witness in evidence.places():
        if evidence.logs[key].values[offset] != value:
            other_values.setdefault((key, offset), {}).setdefault(value, witness)
        write = evidence.writes.get(value)
        if write and write.key == key and write.offset not in (None, offset):
            other_offsets.setdefault(value, {}).setdefault(offset, witness)
    for (key, offset), others in other_values.items():
        log = evidence.logs[key]
        text = f"offset {offset} has the values {_listed([log.values[offset], *others])}"
        operations = [log.witnesses[offset].last, *(witness.last for witness in others.values())]
        yield Finding(Kind.INCONSISTENT_OFFSETS, key, text, operations)
    if evidence.rules.idempotent:
        for value, witnesses in other_offsets.items():
            write = evidence.writes[value]
            text = f"value {value} is at the offsets {_listed([write.offset, *witnesses])}"
            operations = [write.action.last, *(witness.last for witness in witnesses.values())]
            yield Finding(Kind.DUPLICATE, write.key, text, operations)


def _listed(numbers: list[int | None]) -> str:
    return ", ".join(str(number) for number in numbers)
