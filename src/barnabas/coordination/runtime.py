"""Runs state machines: each call is decided, journaled, applied and, once committed, answered.

A Shard is one machine on its journal. It is loading (replaying) first, then active, then closed when its
partition moves away. Everything happens on one event loop; a call that needs no other broker is answered
before it returns."""

import logging
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.coordination.journal import Entry, Journal
from barnabas.coordination.step import PARKED, Machine, Producer, Step, Timer, Waiter
from barnabas.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine)

# A timer whose step cannot be journaled, as on a full disk, is tried again after this long.
RETRY_MS = 1000


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """An event loop, as far as timers are concerned."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Cancellable: ...


class Shard(Generic[M]):
    """`after`, if given, is shown each step once its records are committed, after the answers."""

    def __init__(
        self,
        machine: M,
        journal: Journal,
        scheduler: Scheduler,
        clock: Clock,
        after: Callable[["Shard[M]", Step[Any]], None] | None = None,
    ) -> None:
        self.machine = machine
        self._after = after
        self._journal = journal
        self._scheduler = scheduler
        self._clock = clock
        self._timers: dict[Hashable, Cancellable] = {}
        self._end_offset = 0
        self.is_active = False
        self._is_closed = False

    # ---- life

    def load(self) -> Iterator[None]:
        """Replay the journal a portion at a time; active when the iterator is exhausted."""
        for portion in self._journal.replay():
            for found in portion:
                if isinstance(found, Entry):
                    self.machine.apply(found.record, found.producer)
                else:
                    self.machine.apply_marker(found.producer, found.is_commit)
            yield
        self.is_active = not self._is_closed
        if self.is_active:
            self._take(self.machine.loaded(self._clock.now_ms()), None)

    def close(self) -> None:
        """The partition moved away: no timer fires and no call is taken any more."""
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
        """A transaction's end was appended to this partition."""
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
        # Also without records: an answer must not tell what earlier records, not yet committed, have changed.
        self._journal.when_committed(self._end_offset, lambda error: self._finish(step, answers, error))

    def _finish(self, step: Step[Any], answers: list[tuple[Waiter, Any]], error: KafkaError | None) -> None:
        for waiter, answer in answers:
            waiter.resolve(answer if error is None else error)
        if self._after is not None and error is None:
            self._after(self, step)

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
            logger.error("the timer %s could not be acted on and is tried again: %s", key, error)
            self._set(Timer(key, RETRY_MS))
