"""What the runtime promises a state machine and its callers."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import pytest

from barnabas.clock import FakeClock
from barnabas.coordination.journal import Entry, Marker, Replayed
from barnabas.coordination.runtime import COMMIT_TIMEOUT_MS, LOOK_SECONDS_MAX, RETRY_MS, Shard
from barnabas.coordination.step import PARKED, JournalRecord, Producer, Step, Timer, merged
from barnabas.errors import ErrorCode, KafkaError


class ListJournal:
    """A journal in memory; without `commits_at_once` it commits when `commit` is called."""

    def __init__(self, entries: Sequence[Replayed] = ()) -> None:
        self.entries: list[Replayed] = list(entries)
        self.failure: KafkaError | None = None
        self.commits_at_once = True
        self.committed = 0
        self.led_since = float("inf")
        self._waiting: list[Callable[[KafkaError | None], None]] = []

    @property
    def end_offset(self) -> int:
        return len(self.entries)

    def append(self, records: Sequence[JournalRecord], producer: Producer | None) -> int:
        if self.failure is not None:
            raise self.failure
        self.entries.extend(Entry(record, producer) for record in records)
        return len(self.entries)

    def when_committed(self, end_offset: int, callback: Callable[[KafkaError | None], None]) -> None:
        if self.commits_at_once or end_offset <= self.committed:
            callback(None)
        else:
            self._waiting.append(callback)

    def is_led_since(self, moment: float) -> bool:
        return self.led_since > moment

    def commit(self, error: KafkaError | None = None) -> None:
        if error is None:
            self.committed = len(self.entries)
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(error)

    def replay(self) -> Iterator[list[Replayed]]:
        yield list(self.entries)


class FakeTimer:
    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due, self.callback, self.is_cancelled = due, callback, False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeScheduler:
    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[FakeTimer] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        self.timers.append(FakeTimer(self.now + delay, callback))
        return self.timers[-1]

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for timer in [timer for timer in self.timers if timer.due <= self.now]:
            self.timers.remove(timer)
            if not timer.is_cancelled:
                timer.callback()


class Counter:
    """A machine: counts the records of each key, and notes markers and timers."""

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self.markers: list[Marker] = []
        self.lapsed: list[Hashable] = []
        self.on_lapse: Step[None] = Step(None)

    def apply(self, record: JournalRecord, producer: Producer | None) -> None:
        self.counts[record.key] = self.counts.get(record.key, 0) + 1

    def apply_marker(self, producer: Producer, is_commit: bool) -> None:
        self.markers.append(Marker(producer, is_commit))

    def loaded(self, now_ms: int) -> Step[None]:
        return Step(None, timers=[Timer("loaded", 1000)])

    def lapse(self, key: Hashable, now_ms: int) -> Step[None]:
        self.lapsed.append(key)
        return self.on_lapse


class Inbox:
    def __init__(self) -> None:
        self.answers: list[Any] = []

    def resolve(self, answer: Any) -> None:
        self.answers.append(answer)


def started(
    journal: ListJournal, after: Callable[[Shard[Counter], Step[Any]], None] | None = None
) -> tuple[Shard[Counter], FakeScheduler]:
    scheduler = FakeScheduler()
    shard = Shard(Counter(), journal, scheduler, FakeClock(), after)
    for _ in shard.load():
        assert not shard.is_active
    return shard, scheduler


RECORD = JournalRecord(b"key", b"value")


def test_records_are_journaled_then_applied_then_answered() -> None:
    journal, inbox = ListJournal(), Inbox()
    shard, _ = started(journal)
    shard.run(lambda machine, now_ms: Step("done", [RECORD, RECORD]), inbox)
    assert journal.entries == [Entry(RECORD, None)] * 2
    assert shard.machine.counts == {b"key": 2}
    assert inbox.answers == ["done"]


def test_nothing_is_applied_when_the_journal_refuses() -> None:
    journal, inbox = ListJournal(), Inbox()
    shard, _ = started(journal)
    journal.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(KafkaError):
        shard.run(lambda machine, now_ms: Step("done", [RECORD]), inbox)
    assert shard.machine.counts == {}
    assert inbox.answers == []


def test_answers_wait_for_the_commit_and_turn_into_its_error() -> None:
    journal, first, second = ListJournal(), Inbox(), Inbox()
    shard, _ = started(journal)
    journal.commits_at_once = False
    shard.run(lambda machine, now_ms: Step("one", [RECORD]), first)
    assert first.answers == []
    journal.commit()
    assert first.answers == ["one"]
    shard.run(lambda machine, now_ms: Step("two", [RECORD]), second)
    error = KafkaError(ErrorCode.NOT_COORDINATOR)
    journal.commit(error)
    assert second.answers == [error]


def test_an_answer_without_records_does_not_overtake_earlier_records() -> None:
    journal, first, second = ListJournal(), Inbox(), Inbox()
    shard, _ = started(journal)
    journal.commits_at_once = False
    shard.run(lambda machine, now_ms: Step("written", [RECORD]), first)
    shard.run(lambda machine, now_ms: Step("read"), second)
    assert second.answers == []
    journal.commit()
    assert (first.answers, second.answers) == (["written"], ["read"])


def test_an_answer_that_must_be_newest_waits_until_it_is_certain_who_leads() -> None:
    journal, inbox, other = ListJournal(), Inbox(), Inbox()
    shard, scheduler = started(journal)
    journal.led_since = float("-inf")
    shard.run(lambda machine, now_ms: Step("newest", must_be_newest=True), inbox)
    shard.run(lambda machine, now_ms: Step("any"), other)
    scheduler.advance(LOOK_SECONDS_MAX)
    assert (inbox.answers, other.answers) == ([], ["any"])
    journal.led_since = float("inf")
    scheduler.advance(LOOK_SECONDS_MAX)
    assert inbox.answers == ["newest"]


def test_an_answer_that_must_be_newest_is_refused_when_another_broker_leads_or_nobody_knows() -> None:
    journal, first, second = ListJournal(), Inbox(), Inbox()
    shard, scheduler = started(journal)
    journal.led_since = float("-inf")
    shard.run(lambda machine, now_ms: Step("newest", must_be_newest=True), first)
    scheduler.advance(COMMIT_TIMEOUT_MS / 1000)
    assert [error.code for error in first.answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    shard.run(lambda machine, now_ms: Step("newest", must_be_newest=True), second)
    shard.close()
    scheduler.advance(LOOK_SECONDS_MAX)
    assert [error.code for error in second.answers] == [ErrorCode.NOT_COORDINATOR]


def test_after_a_replay_answers_wait_until_the_replayed_records_are_committed() -> None:
    journal, inbox = ListJournal([Entry(RECORD, None)]), Inbox()
    journal.commits_at_once = False
    shard, _ = started(journal)
    shard.run(lambda machine, now_ms: Step(machine.counts[b"key"]), inbox)
    assert inbox.answers == []
    journal.commit()
    assert inbox.answers == [1]


def test_a_caller_is_answered_when_a_commit_takes_too_long() -> None:
    journal, inbox, late = ListJournal(), Inbox(), Inbox()
    steps: list[Any] = []
    shard, scheduler = started(journal, lambda shard, step: steps.append(step.reply))
    scheduler.advance(1)
    steps.clear()
    journal.commits_at_once = False
    shard.run(lambda machine, now_ms: Step("done", [RECORD]), inbox)
    scheduler.advance(COMMIT_TIMEOUT_MS / 1000)
    assert [error.code for error in inbox.answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert steps == []
    journal.commit()
    assert len(inbox.answers) == 1, "nobody is answered twice"
    assert steps == ["done"], "what follows from a step follows whenever it is committed"
    shard.run(lambda machine, now_ms: Step("next"), late)
    scheduler.advance(COMMIT_TIMEOUT_MS / 1000)
    assert late.answers == ["next"]


def test_what_follows_a_step_waits_for_its_commit_and_is_left_out_when_that_fails() -> None:
    journal, steps = ListJournal(), list[Any]()
    shard, _ = started(journal, lambda shard, step: steps.append(step.reply))
    journal.commits_at_once = False
    shard.run(lambda machine, now_ms: Step("one", [RECORD]))
    assert steps == [None]
    journal.commit()
    assert steps == [None, "one"]
    shard.run(lambda machine, now_ms: Step("two", [RECORD]))
    journal.commit(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert steps == [None, "one"]


def test_a_shard_that_is_closed_while_it_loads_never_becomes_active() -> None:
    shard = Shard(Counter(), ListJournal([Entry(RECORD, None)]), FakeScheduler(), FakeClock())
    portions = shard.load()
    next(portions)
    shard.close()
    assert list(portions) == []
    assert not shard.is_active
    with pytest.raises(KafkaError) as closed:
        shard.run(lambda machine, now_ms: Step(None))
    assert closed.value.code == ErrorCode.NOT_COORDINATOR


def test_a_step_that_cannot_be_decided_changes_nothing() -> None:
    journal, inbox = ListJournal(), Inbox()
    shard, _ = started(journal)

    def refuse(machine: Counter, now_ms: int) -> Step[None]:
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    with pytest.raises(KafkaError):
        shard.run(refuse, inbox)
    assert (journal.entries, inbox.answers) == ([], [])


def test_steps_merge_in_order_and_the_last_word_about_a_timer_counts() -> None:
    first: Step[None] = Step(None, [RECORD], timers=[Timer("a", 1), Timer("b", 1)])
    second: Step[None] = Step(None, timers=[Timer("a", 2)], cancelled=["b", "c"])
    third: Step[None] = Step(None, [JournalRecord(b"last", None)], timers=[Timer("c", 3)])
    whole = merged("reply", [first, second, third])
    assert whole.reply == "reply"
    assert whole.records == [RECORD, JournalRecord(b"last", None)]
    assert whole.timers == [Timer("a", 2), Timer("c", 3)]
    assert whole.cancelled == ["b"]


def test_a_parked_caller_is_answered_by_a_later_step() -> None:
    parked, caller = Inbox(), Inbox()
    shard, _ = started(ListJournal())
    shard.run(lambda machine, now_ms: Step(PARKED), parked)
    assert parked.answers == []
    shard.run(lambda machine, now_ms: Step("yours", answers=[(parked, "at last")]), caller)
    assert parked.answers == ["at last"]
    assert caller.answers == ["yours"]


def test_replay_gives_the_machine_the_same_records_and_markers() -> None:
    producer = Producer(7, 0)
    journal = ListJournal([Entry(RECORD, None), Entry(RECORD, producer), Marker(producer, True)])
    shard, _ = started(journal)
    assert shard.is_active
    assert shard.machine.counts == {b"key": 2}
    assert shard.machine.markers == [Marker(producer, True)]


def test_a_shard_takes_calls_only_while_it_is_active() -> None:
    shard = Shard(Counter(), ListJournal(), FakeScheduler(), FakeClock())
    with pytest.raises(KafkaError) as loading:
        shard.run(lambda machine, now_ms: Step(None))
    assert loading.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shard, scheduler = started(ListJournal())
    shard.close()
    with pytest.raises(KafkaError) as closed:
        shard.run(lambda machine, now_ms: Step(None))
    assert closed.value.code == ErrorCode.NOT_COORDINATOR
    scheduler.advance(10)
    assert shard.machine.lapsed == []


def test_timers_come_back_as_calls_and_can_be_replaced_or_cancelled() -> None:
    shard, scheduler = started(ListJournal())
    scheduler.advance(1)
    assert shard.machine.lapsed == ["loaded"]
    shard.run(lambda machine, now_ms: Step(None, timers=[Timer("a", 100), Timer("b", 100)]))
    shard.run(lambda machine, now_ms: Step(None, timers=[Timer("a", 500)], cancelled=["b"]))
    scheduler.advance(0.2)
    assert shard.machine.lapsed == ["loaded"]
    scheduler.advance(0.4)
    assert shard.machine.lapsed == ["loaded", "a"]


@pytest.mark.parametrize(
    ("code", "level"),
    [(ErrorCode.KAFKA_STORAGE_ERROR, "ERROR"), (ErrorCode.COORDINATOR_NOT_AVAILABLE, "WARNING")],
)
def test_a_timer_without_enough_replicas_is_no_error_of_the_broker(
    code: ErrorCode, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    journal = ListJournal()
    shard, scheduler = started(journal)
    shard.machine.on_lapse = Step(None, [RECORD])
    journal.failure = KafkaError(code)
    scheduler.advance(1.0)
    assert [record.levelname for record in caplog.records] == [level]


def test_a_timer_that_cannot_be_journaled_is_tried_again() -> None:
    journal = ListJournal()
    shard, scheduler = started(journal)
    shard.machine.on_lapse = Step(None, [RECORD])
    journal.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    scheduler.advance(1)
    assert shard.machine.counts == {}
    journal.failure = None
    scheduler.advance(RETRY_MS / 1000)
    assert shard.machine.counts == {b"key": 1}
