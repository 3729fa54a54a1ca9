"""A GroupMachine with a list as its journal, and time that passes when a test says so."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from barnabas.coordination.step import PARKED, JournalRecord, Producer, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.machine import GroupMachine
from barnabas.groups.records import record_type
from barnabas.groups.settings import GroupSettings
from barnabas.ids import Uuid

# A record and the producer of its transaction, or the end of a transaction and whether it committed.
JournalEntry: TypeAlias = tuple[JournalRecord, Producer | None] | tuple[Producer, bool]
OFFSET_TYPES = (0, 1)


@dataclass
class FakeTopics:
    """Topics with their partition counts; an id is made from the name and how often it was created."""

    counts: dict[str, int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)

    def make(self, topic: str, count: int) -> Uuid:
        self.made[topic] = self.made.get(topic, 0) + 1
        self.counts[topic] = count
        return self.id_of(topic)

    def id_of(self, topic: str) -> Uuid:
        return f"{topic}-{self.made[topic]}".encode().ljust(16, b".")

    def partition_count(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def topic_id(self, topic: str) -> Uuid | None:
        return self.id_of(topic) if topic in self.counts else None

    def topic_name(self, topic_id: Uuid) -> str | None:
        return next((topic for topic in self.counts if self.id_of(topic) == topic_id), None)

    def names(self) -> list[str]:
        return list(self.counts)


class Answer:
    """A waiter that keeps its answer."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def resolve(self, answer: Any) -> None:
        self.values.append(answer)

    @property
    def value(self) -> Any:
        assert len(self.values) == 1, f"{len(self.values)} answers"
        return self.values[0]


class MachineBench:
    """Decides, journals, applies and answers as the runtime does."""

    def __init__(self, settings: GroupSettings, topics: FakeTopics) -> None:
        self.settings = settings
        self.topics = topics
        self.machine = GroupMachine(settings, topics)
        self.now_ms = 1_000_000
        self.journal: list[JournalEntry] = []
        self.timers: dict[Hashable, int] = {}
        self.disk_is_full = False

    def call(self, decide: Callable[[GroupMachine], Step[Any]]) -> Any:
        """The reply, or PARKED. Raises KafkaError when the records cannot be written."""
        step = decide(self.machine)
        if step.records and self.disk_is_full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        for record in step.records:
            self.journal.append((record, step.producer))
            self.machine.apply(record, step.producer)
        for key in step.cancelled:
            self.timers.pop(key, None)
        for timer in step.timers:
            self.timers[timer.key] = self.now_ms + timer.delay_ms
        for waiter, answer in step.answers:
            waiter.resolve(answer)
        return step.reply

    def ask(self, decide: Callable[[GroupMachine, Answer], Step[Any]]) -> Answer:
        """For calls that may be parked: the answer comes at once or later."""
        answer = Answer()
        reply = self.call(lambda machine: decide(machine, answer))
        if reply is not PARKED:
            answer.resolve(reply)
        return answer

    def marker(self, producer: Producer, is_commit: bool) -> None:
        self.journal.append((producer, is_commit))
        self.machine.apply_marker(producer, is_commit)

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass; timers run out in order."""
        end_ms = self.now_ms + duration_ms
        while True:
            due = min(self.timers, key=lambda key: self.timers[key], default=None)
            if due is None or self.timers[due] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(due))
            try:
                self.call(self._lapse_of(due))
            except KafkaError:
                # As the runtime does: it is tried again.
                self.timers[due] = self.now_ms + 1000
        self.now_ms = end_ms

    def _lapse_of(self, key: Hashable) -> Callable[[GroupMachine], Step[Any]]:
        return lambda machine: machine.lapse(key, self.now_ms)

    def replayed(self) -> GroupMachine:
        return self._replay_of(self.journal)

    def replayed_compacted(self) -> GroupMachine:
        """From a journal in which the cleaner left only the last record of each group's keys, and none that
        removes. Offsets stay as they are: which of them may go depends on transactions."""
        seen: set[bytes] = set()
        kept: list[JournalEntry] = []
        for entry in reversed(self.journal):
            first = entry[0]
            if isinstance(first, JournalRecord) and record_type(first) not in OFFSET_TYPES:
                if first.key in seen or first.value is None:
                    seen.add(first.key)
                    continue
                seen.add(first.key)
            kept.append(entry)
        return self._replay_of(kept[::-1])

    def _replay_of(self, journal: list[JournalEntry]) -> GroupMachine:
        machine = GroupMachine(self.settings, self.topics)
        for first, second in journal:
            if isinstance(first, Producer):
                machine.apply_marker(first, bool(second))
            else:
                machine.apply(first, second if isinstance(second, Producer) else None)
        return machine

    def fail_over(self) -> None:
        """Another broker takes over: everything that is not in the journal is lost."""
        self.machine = self.replayed()
        self.timers.clear()
        self.call(lambda machine: machine.loaded(self.now_ms))


def durable(machine: GroupMachine) -> dict[str, object]:
    """What a machine must have again after a replay, in a form that can be compared."""
    state: dict[str, object] = {"offsets": machine.groups.offsets.durable_state()}
    for group in machine.groups.in_journal():
        kept = group.saved if isinstance(group, ClassicGroup) else dict(vars(group.durable))
        state[group.group_id] = (type(group).__name__, kept)
    return state
