"""Random histories of offsets against a plain model: transactions are all or nothing, nothing goes back or
away by itself, and a replay of the journal, compacted or not, gives the same state."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.coordination.step import JournalRecord, Producer
from barnabas.groups.offsets import CommittedOffset, OffsetStore, offset_record, offset_tombstone
from barnabas.groups.record_schemas import OffsetCommitKey, OffsetCommitValue
from barnabas.groups.records import decode
from barnabas.ids import TopicPartition

GROUPS = st.sampled_from(["a", "b"])
PARTITIONS = st.builds(TopicPartition, st.sampled_from(["x", "y"]), st.integers(0, 1))
PRODUCERS = st.integers(1, 3)
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 100), min_size=1)

# A record and the producer of its transaction, or the end of a transaction.
Entry = tuple[JournalRecord, int | None] | tuple[Producer, bool]
Slot = tuple[str, TopicPartition]


def replayed(journal: list[Entry]) -> OffsetStore:
    store = OffsetStore()
    for entry in journal:
        run(store, entry)
    return store


def run(store: OffsetStore, entry: Entry) -> None:
    first, second = entry
    if isinstance(first, Producer):
        store.end_transaction(first.id, bool(second))
        return
    decoded = decode(first)
    assert decoded is not None
    assert isinstance(decoded.key, OffsetCommitKey)
    assert decoded.value is None or isinstance(decoded.value, OffsetCommitValue)
    store.apply(decoded.key, decoded.value, second)


def compacted(journal: list[Entry]) -> list[Entry]:
    """As the cleaner does it: a plain record goes if a later plain one, or one of a transaction that has
    committed, has its key. Records of open transactions and their ends stay; aborted ones go."""
    decided: dict[int, bool] = {}
    kept: list[Entry] = []
    seen: set[bytes] = set()
    for entry in reversed(journal):
        first, second = entry
        if isinstance(first, Producer):
            decided[first.id] = bool(second)
            kept.append(entry)
            continue
        if second is not None and second in decided and not decided[second]:
            continue
        is_decided = second is None or second in decided
        if is_decided and first.key in seen:
            continue
        if is_decided:
            seen.add(first.key)
        kept.append(entry)
    return kept[::-1]


class Offsets(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = OffsetStore()
        self.journal: list[Entry] = []
        self.visible: dict[Slot, int] = {}
        # Per producer: the offset, and whether a plain change has come after it.
        self.pending: dict[int, dict[Slot, int]] = {}
        self.clock = 0
        self.changed_at: dict[Slot, int] = {}
        self.pended_at: dict[tuple[int, Slot], int] = {}

    def write(self, entry: Entry) -> None:
        self.journal.append(entry)
        run(self.store, entry)
        self.clock += 1

    @rule(group=GROUPS, offsets=OFFSETS)
    def commit(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        for partition, offset in offsets.items():
            self.write((offset_record(group, partition, CommittedOffset(offset)), None))
            self.visible[group, partition] = offset
            self.changed_at[group, partition] = self.clock

    @rule(group=GROUPS, offsets=OFFSETS, producer=PRODUCERS)
    def commit_in_transaction(self, group: str, offsets: dict[TopicPartition, int], producer: int) -> None:
        for partition, offset in offsets.items():
            self.write((offset_record(group, partition, CommittedOffset(offset)), producer))
            self.pending.setdefault(producer, {})[group, partition] = offset
            self.pended_at[producer, (group, partition)] = self.clock

    @rule(producer=PRODUCERS, is_commit=st.booleans())
    def end(self, producer: int, is_commit: bool) -> None:
        self.write((Producer(producer, 0), is_commit))
        for slot, offset in self.pending.pop(producer, {}).items():
            pended_at = self.pended_at[producer, slot]
            if is_commit and pended_at > self.changed_at.get(slot, 0):
                self.visible[slot] = offset
                self.changed_at[slot] = pended_at

    @rule(group=GROUPS, partition=PARTITIONS)
    def remove(self, group: str, partition: TopicPartition) -> None:
        for record in self.store.removal(group, partition):
            self.write((record, None))
        self.forget(group, partition)

    @rule(group=GROUPS)
    def remove_group(self, group: str) -> None:
        for record in self.store.removal_of_group(group):
            self.write((record, None))
        for index in range(2):
            for topic in ("x", "y"):
                self.forget(group, TopicPartition(topic, index))

    def forget(self, group: str, partition: TopicPartition) -> None:
        self.visible.pop((group, partition), None)
        for slots in self.pending.values():
            slots.pop((group, partition), None)

    @invariant()
    def shows_what_the_model_shows(self) -> None:
        seen = {
            (group, partition): committed.offset
            for group in ("a", "b")
            for partition, committed in self.store.of_group(group)
        }
        assert seen == self.visible

    @invariant()
    def knows_what_is_pending(self) -> None:
        waiting = {slot for slots in self.pending.values() for slot in slots}
        for group in ("a", "b"):
            for topic in ("x", "y"):
                for index in range(2):
                    partition = TopicPartition(topic, index)
                    assert self.store.is_pending(group, partition) == ((group, partition) in waiting)
            assert self.store.has_open_transactions(group) == any(slot[0] == group for slot in waiting)

    @invariant()
    def replays_to_the_same_state(self) -> None:
        assert replayed(self.journal).durable_state() == self.store.durable_state()

    @invariant()
    def replays_to_the_same_offsets_after_compaction(self) -> None:
        again = replayed(compacted(self.journal))
        assert again.durable_state()[0] == self.store.durable_state()[0]


OffsetsTest = Offsets.TestCase
OffsetsTest.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_the_model_notices_a_lost_tombstone() -> None:
    """The harness itself: a journal without the tombstone must not replay to the same state."""
    put = (offset_record("a", TopicPartition("x", 0), CommittedOffset(1)), None)
    gone = (offset_tombstone("a", TopicPartition("x", 0)), None)
    assert replayed([put, gone]).durable_state() != replayed([put]).durable_state()
