"""Members of a group, each in a thread that polls all the time, as an application does."""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from tests.clients.client import wait_until
from tests.clients.consumers import CONSUMERS, Changes, ConsumerSetup, GroupConsumer, Place, Seen

T = TypeVar("T")
PATIENCE_SECONDS = 45.0
# kafka-python 3.0.12 may lose a setup step that takes longer than one poll; this happens with any broker.
POLL_SECONDS = {"kafka-python": 1.0}


class Member:
    """With `commits`, it commits after every poll that returned records."""

    def __init__(self, library: str, bootstrap: str, setup: ConsumerSetup, commits: bool = False) -> None:
        self.library = library
        self.received: list[Seen] = []
        self.owned: frozenset[Place] = frozenset()
        self.changes = Changes()
        self.failure: BaseException | None = None
        self._start: Callable[[], GroupConsumer] = lambda: CONSUMERS[library](bootstrap, setup)
        self._commits = commits
        self._calls: queue.SimpleQueue[tuple[Callable[[GroupConsumer], Any], Future[Any]]] = (
            queue.SimpleQueue()
        )
        self._stopping = threading.Event()
        self._polling = threading.Event()
        self._polling.set()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:  # kept for the test, which raises it
            self.failure = failure
        finally:
            self.owned = frozenset()

    def _run(self) -> None:
        consumer = self._start()
        self.changes = consumer.changes
        try:
            while not self._stopping.is_set():
                self._answer_calls(consumer)
                if not self._polling.is_set():
                    time.sleep(0.01)
                    continue
                seen = consumer.poll(POLL_SECONDS.get(self.library, 0.1))
                self.received += seen
                if seen and self._commits:
                    consumer.commit()
                self.owned = consumer.assignment()
        finally:
            consumer.close()

    def _answer_calls(self, consumer: GroupConsumer) -> None:
        while not self._calls.empty():
            call, future = self._calls.get()
            try:
                future.set_result(call(consumer))
            except Exception as raised:  # raised in the calling thread
                future.set_exception(raised)

    def ask(self, call: Callable[[GroupConsumer], T]) -> T:
        """Run it in the member's thread, between two polls."""
        future: Future[T] = Future()
        self._calls.put((call, future))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not future.done():
            if self.failure is not None:
                raise self.failure
            assert time.monotonic() < deadline, "the member's thread does not answer"
            time.sleep(0.005)
        return future.result()

    def stop_polling(self) -> None:
        """Stop polling, like a consumer that is busy with its records. Returns when the current poll is over:
        then the consumer does not join again."""
        self._polling.clear()
        self.ask(lambda consumer: None)

    def poll_again(self) -> None:
        self._polling.set()

    def leave(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the member does not end"

    @property
    def values(self) -> list[bytes]:
        return [seen.value for seen in list(self.received)]


def places_of(topic: str, count: int) -> frozenset[Place]:
    return frozenset((topic, number) for number in range(count))


def shares(members: Sequence[Member]) -> list[int]:
    return sorted(len(member.owned) for member in members)


def are_settled(members: Sequence[Member], places: Collection[Place]) -> bool:
    """Every partition has one owner, and the numbers of partitions differ by at most one."""
    for member in members:
        if member.failure is not None:
            raise member.failure
    owners = Counter(place for member in members for place in member.owned)
    if owners != Counter(places):
        return False
    sizes = shares(members)
    return sizes[-1] - sizes[0] <= 1


def settle(members: Sequence[Member], places: Collection[Place]) -> None:
    wait_until(
        lambda: are_settled(members, places),
        f"{len(members)} members share {len(places)} partitions",
        PATIENCE_SECONDS,
    )


def wait_for_values(members: Sequence[Member], values: Collection[bytes]) -> None:
    expected = set(values)
    wait_until(
        lambda: expected <= {value for member in members for value in member.values},
        "all records are consumed",
        PATIENCE_SECONDS,
    )
