"""Runs state machines: each call is decided, journaled, applied, and answered once it is committed.

A Shard is one machine with its journal. First it loads (replays its journal), then it is active, and it is
closed when its partition moves to another broker. Everything happens on one event loop. A call that does not
wait for another broker is answered before it returns."""

import logging
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.coordination.journal import Entry, Journal
from barnabas.coordination.step import PARKED, Machine, Producer, Step, Timer, Waiter
from barnabas.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine)

# A timer whose step cannot be journaled, for example on a full disk, is tried again after this time.
RETRY_MS = 1000
COMMIT_TIMEOUT_MS = 30_000
# How often to look whether it is known that this broker still leads: mostly it is after a few milliseconds,
# but not while the metadata store is away.
LOOK_SECONDS_MIN, LOOK_SECONDS_MAX = 0.005, 0.05


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """An event loop, as far as timers are concerned."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Cancellable: ...


class _Answers:
    """The answers of one step; each is given once, when the step is committed or fails."""

    def __init__(self, answers: list[tuple[Waiter, Any]]) -> None:
        self.are_open = bool(answers)
        self.timeout: Cancellable | None = None
        self._answers = answers

    def give(self, error: KafkaError | None) -> None:
        if not self.are_open:
            return
        self.are_open = False
        if self.timeout is not None:
            self.timeout.cancel()
        for waiter, answer in self._answers:
            waiter.resolve(answer if error is None else error)


class Shard(Generic[M]):
    """`after`, if given, gets each step when its records are committed, after the answers.

    Callers get COORDINATOR_NOT_AVAILABLE when a step is not committed within `commit_timeout_ms`; `after`
    waits for as long as the commit takes."""

    def __init__(
        self,
        machine: M,
        journal: Journal,
        scheduler: Scheduler,
        clock: Clock,
        after: Callable[["Shard[M]", Step[Any]], None] | None = None,
        *,
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
    ) -> None:
        self.machine = machine
        self._after = after
        self._commit_timeout_ms = commit_timeout_ms
        self._journal = journal
        self._scheduler = scheduler
        self._clock = clock
        self._timers: dict[Hashable, Cancellable] = {}
        self._end_offset = 0
        self.is_active = False
        self._is_closed = False

    # ---- life

    def load(self) -> Iterator[None]:
        """Replay the journal a portion at a time; active when the iterator is exhausted, unless the shard was
        closed meanwhile."""
        for portion in self._journal.replay():
            if self._is_closed:
                return
            for replayed in portion:
                if isinstance(replayed, Entry):
                    self.machine.apply(replayed.record, replayed.producer)
                else:
                    self.machine.apply_marker(replayed.producer, replayed.is_commit)
            yield
        self.is_active = not self._is_closed
        if self.is_active:
            # The last records may not be committed yet, and no answer may depend on them before that.
            self._end_offset = self._journal.end_offset
            self._take(self.machine.loaded(self._clock.now_ms()), None)

    def close(self) -> None:
        """The partition moved away: from now on no timer fires and every call is refused."""
        self._is_closed = True
        self.is_active = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # ---- calls

    def run(self, decide: Callable[[M, int], Step[Any]], waiter: Waiter | None = None) -> None:
        """Decide and carry out a step; `waiter` gets the reply or a KafkaError. Raises what `decide` does."""
        if not self.is_active:
            code = ErrorCode.NOT_COORDINATOR if self._is_closed else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            raise KafkaError(code)
        self._take(decide(self.machine, self._clock.now_ms()), waiter)

    def marker_written(self, producer: Producer, is_commit: bool) -> None:
        """The end of a client's transaction was appended to this partition, as its last batch."""
        self._end_offset = self._journal.end_offset
        self.machine.apply_marker(producer, is_commit)

    def _take(self, step: Step[Any], waiter: Waiter | None) -> None:
        if step.records:
            self._end_offset = self._journal.append(step.records, step.producer)
            for record in step.records:
                self.machine.apply(record, step.producer)
        for key in step.cancelled:
            self._cancel(key)
        for timer in step.timers:
            self._set(timer)
        answers = list(step.answers)
        if waiter is not None and step.reply is not PARKED:
            answers.append((waiter, step.reply))
        # A step without records waits, too: its answer may depend on earlier records that are not committed.
        self._finish_when_committed(step, _Answers(answers))

    def _finish_when_committed(self, step: Step[Any], answers: _Answers) -> None:
        called_at = self._clock.monotonic()

        def finish(error: KafkaError | None) -> None:
            if error is None and step.must_be_newest:
                self._give_when_newest(answers, called_at, LOOK_SECONDS_MIN)
            else:
                answers.give(error)
            if self._after is not None and error is None:
                self._after(self, step)

        def give_up() -> None:
            answers.give(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))

        self._journal.when_committed(self._end_offset, finish)
        if answers.are_open:
            answers.timeout = self._scheduler.call_later(self._commit_timeout_ms / 1000, give_up)

    def _give_when_newest(self, answers: _Answers, called_at: float, pause: float) -> None:
        if not answers.are_open:
            return
        if self._is_closed:
            answers.give(KafkaError(ErrorCode.NOT_COORDINATOR))
        elif self._journal.is_led_since(called_at):
            answers.give(None)
        else:
            longer = min(2 * pause, LOOK_SECONDS_MAX)
            self._scheduler.call_later(pause, lambda: self._give_when_newest(answers, called_at, longer))

    # ---- timers

    def _set(self, timer: Timer) -> None:
        self._cancel(timer.key)
        self._timers[timer.key] = self._scheduler.call_later(
            max(0, timer.delay_ms) / 1000, lambda: self._lapse(timer.key)
        )

    def _cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _lapse(self, key: Hashable) -> None:
        self._timers.pop(key, None)
        try:
            self._take(self.machine.lapse(key, self._clock.now_ms()), None)
        except KafkaError as error:
            # Replicas that are away are not an error of this broker.
            level = logging.WARNING if error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE else logging.ERROR
            logger.log(level, "the timer %s failed and is tried again in %d ms: %s", key, RETRY_MS, error)
            self._set(Timer(key, RETRY_MS))
