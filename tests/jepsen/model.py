"""A model of a cluster that keeps every promise, and of clients with much bad luck: it makes legal histories.

Every operation of a client is a generator that stops wherever something else may happen: other clients go on,
the client may be killed, and requests that were sent long ago may land."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.jepsen.history import History
from tests.jepsen.story import COPIERS, GROUP, KEY, OTHER_KEY, Client, Story

KEYS = (KEY, OTHER_KEY)
CLIENTS = 4
POLL_RECORDS_MAX = 4


@dataclass(slots=True, eq=False)
class Transaction:
    state: str = "open"
    keys: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Entry:
    value: int | None  # None for the marker of a transaction
    transaction: Transaction | None


class Cluster:
    """Logs with transactions, and the committed offsets of one group."""

    def __init__(self) -> None:
        self.logs: dict[str, list[Entry]] = {key: [] for key in KEYS}
        self.committed: dict[str, int | None] = dict.fromkeys(KEYS)
        # The highest offset that anybody has committed since the last reset: consumers only go forward.
        self.progress = dict.fromkeys(KEYS, 0)

    def append(self, key: str, value: int, transaction: Transaction | None = None) -> int:
        self.logs[key].append(Entry(value, transaction))
        if transaction:
            transaction.keys.add(key)
        return len(self.logs[key]) - 1

    def end(self, transaction: Transaction, state: str) -> None:
        transaction.state = state
        for key in transaction.keys:
            self.logs[key].append(Entry(None, transaction))

    def read(self, key: str, position: int) -> list[tuple[int, int]]:
        """What a reader of committed records sees: nothing behind a transaction that is open."""
        records = []
        for offset in range(position, len(self.logs[key])):
            entry = self.logs[key][offset]
            if entry.transaction and entry.transaction.state == "open":
                break
            if entry.value is not None and not (entry.transaction and entry.transaction.state == "aborted"):
                records.append((offset, entry.value))
        return records

    def commit(self, key: str, offset: int) -> None:
        self.committed[key] = offset
        self.progress[key] = max(self.progress[key], offset)

    def reset(self, key: str, offset: int) -> None:
        self.committed[key] = self.progress[key] = offset


class ModelClient:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.random = model.random
        self.cluster = model.cluster
        self.events: Client = model.story.client()
        self.running: Iterator[None] | None = None
        self.transaction: Transaction | None = None
        self.is_committing = False
        self.positions = dict.fromkeys(KEYS, 0)
        self.is_subscribed = self.is_new_member = self.reports_rebalances = False

    def step(self) -> None:
        """Begins an operation, or goes on with the one that is under way."""
        if self.running is None:
            self.running = self.random.choice(self.operations())()
        if next(self.running, self) is self:
            self.running = None

    def operations(self) -> list[Callable[[], Iterator[None]]]:
        often = [self.send, self.send, self.send_together, self.poll, self.poll, self.transact, self.transact]
        others = [self.assign, self.subscribe, self.seek, self.commit, self.find_committed, self.reset]
        return often * 2 + others

    def crash(self) -> None:
        """What was under way is unknown. A transaction is aborted, unless its commit had begun."""
        self.events.crashes()
        self.running = None
        if self.transaction:
            may_commit = self.is_committing and self.random.random() < 0.5
            self.model.later(self.cluster.end, self.transaction, "committed" if may_commit else "aborted")
            self.transaction = None
        self._start_again(is_subscribed=False)

    # ---- records

    def send(self) -> Iterator[None]:
        key, value = self.random.choice(KEYS), self.model.new_value()
        self.events.begins("send", ("send", key, value))
        yield
        fate = self.random.choice(["ok", "ok", "ok", "ok", "applied", "late", "lost", "fail"])
        if fate in ("ok", "applied"):
            offset = self.cluster.append(key, value)
        elif fate == "late":
            self.model.later(self.cluster.append, key, value)
        yield
        if fate == "ok":
            known_offset = None if self.random.random() < 0.1 else offset
            self.events.ends("ok", ("send", key, (known_offset, value)))
        else:
            self.events.ends("fail" if fate == "fail" else "unknown", ("send", key, value))

    def send_together(self) -> Iterator[None]:
        """Records of each key land in order. What comes after one that is late, lost or refused is no better
        off."""
        sends = [(self.random.choice(KEYS), self.model.new_value()) for _ in range(self.random.randint(2, 5))]
        self.events.begins("send", *(("send", key, value) for key, value in sends))
        yield
        fates = {key: self.random.choice(["ok", "ok", "ok", "late", "lost", "fail"]) for key in KEYS}
        good = {key: self.random.randint(0, len(sends)) for key in KEYS}
        done: list[tuple[Any, ...]] = []
        late: list[tuple[str, int]] = []
        for key, value in sends:
            fate = "ok" if good[key] > 0 else fates[key]
            good[key] -= 1
            if fate == "ok":
                done.append(("send", key, (self.cluster.append(key, value), value), "ok"))
            else:
                done.append(("send", key, value, "fail" if fate == "fail" else "unknown"))
            if fate == "late":
                late.append((key, value))
            yield
        self.model.later(self._append_all, late)
        self.events.ends(self.random.choice(["ok", "unknown"]), *done)

    def _append_all(self, sends: list[tuple[str, int]]) -> None:
        for key, value in sends:
            self.cluster.append(key, value)

    def transact(self) -> Iterator[None]:
        names = self.random.choices(["send", "send", "poll", "commit"], k=self.random.randint(1, 4))
        plan = [self._plan(name) for name in names]
        is_commit = self.random.random() < 0.7
        self.events.begins("txn", *plan, commit=is_commit)
        self.transaction, self.is_committing = Transaction(), False
        done: list[tuple[Any, ...]] = []
        offsets: dict[str, int] = {}
        for micro in plan:
            yield
            if micro[0] == "send":
                offset = self.cluster.append(micro[1], micro[2], self.transaction)
                done.append(("send", micro[1], (offset, micro[2])))
            elif micro[0] == "poll":
                done += self._poll()
            else:
                done.append(micro)
                offsets |= micro[2]
        self.is_committing = is_commit
        yield
        self._end_transaction(is_commit, done, offsets)

    def _plan(self, name: str) -> tuple[Any, ...]:
        key = self.random.choice(KEYS)
        if name == "send":
            return "send", key, self.model.new_value()
        if name == "commit":
            return "commit", GROUP, {key: self._next_commit(key)}
        return ("poll",)

    def _end_transaction(self, is_commit: bool, done: list[Any], offsets: dict[str, int]) -> None:
        assert self.transaction
        outcome = self.random.choice(["ok", "ok", "ok", "unknown", "unknown", "fail"])
        is_committed = is_commit and (
            outcome == "ok" or (outcome == "unknown" and self.random.random() < 0.6)
        )
        self.cluster.end(self.transaction, "committed" if is_committed else "aborted")
        self.transaction = None
        if is_committed:
            for key, offset in offsets.items():
                self.cluster.commit(key, offset)
        elif self.random.random() < 0.5:
            self.positions = dict.fromkeys(KEYS, 0)  # reads again
        self.events.ends(outcome, *done)

    def poll(self) -> Iterator[None]:
        self.events.begins("poll", ("poll",))
        yield
        outcome = self.random.choice(["ok", "ok", "ok", "ok", "unknown", "fail"])
        if outcome == "fail":
            self.events.ends("fail", ("poll",))
            return
        result = self._poll()
        yield
        if outcome == "ok":
            self.events.ends("ok", *result)
        else:
            self.events.ends("unknown", ("poll",))

    def _poll(self) -> list[tuple[Any, ...]]:
        micro: list[tuple[Any, ...]] = []
        if self.is_subscribed and (self.is_new_member or self.random.random() < 0.3):
            keys = list(KEYS) if self.is_new_member else [self.random.choice(KEYS)]
            self.is_new_member = False
            for key in keys:
                self.positions[key] = self.random.randint(0, len(self.cluster.logs[key]))
            if self.reports_rebalances:
                micro.append(("rebalance", keys))
        result = {}
        for key in KEYS:
            records = self.cluster.read(key, self.positions[key])[: self.random.randint(0, POLL_RECORDS_MAX)]
            if records:
                result[key] = records
                self.positions[key] = records[-1][0] + 1
        return [*micro, ("poll", result)]

    # ---- positions

    def _start_again(self, is_subscribed: bool) -> None:
        self.positions = {key: self.random.randint(0, len(self.cluster.logs[key])) for key in KEYS}
        self.is_subscribed = self.is_new_member = is_subscribed
        self.reports_rebalances = is_subscribed and self.random.random() < 0.5

    def assign(self) -> Iterator[None]:
        self.events.assigns(*KEYS)
        self._start_again(is_subscribed=False)
        yield

    def subscribe(self) -> Iterator[None]:
        self.events.subscribes()
        self._start_again(is_subscribed=True)
        yield

    def seek(self) -> Iterator[None]:
        key = self.random.choice(KEYS)
        offset = self.random.randint(0, len(self.cluster.logs[key]))
        outcome = self.random.choice(["ok", "ok", "unknown", "fail"])
        self.events.seeks(offset, key, outcome)
        if outcome == "ok" or (outcome == "unknown" and self.random.random() < 0.5):
            self.positions[key] = offset
        yield

    # ---- committed offsets

    def _next_commit(self, key: str) -> int:
        least = max(self.cluster.progress[key], self.cluster.committed[key] or 0)
        self.cluster.progress[key] = least + self.random.randint(0, 2)
        return self.cluster.progress[key]

    def commit(self) -> Iterator[None]:
        key = self.random.choice(KEYS)
        return self._change_offset("commit", key, self._next_commit(key), self.cluster.commit)

    def reset(self) -> Iterator[None]:
        return self._change_offset(
            "reset", self.random.choice(KEYS), self.random.randint(0, 3), self.cluster.reset
        )

    def _change_offset(
        self, name: str, key: str, offset: int, apply: Callable[[str, int], None]
    ) -> Iterator[None]:
        self.events.begins(name, (name, GROUP, {key: offset}))
        yield
        fate = self.random.choice(["ok", "ok", "ok", "applied", "late", "lost", "fail"])
        if fate in ("ok", "applied"):
            apply(key, offset)
        elif fate == "late":
            self.model.later(apply, key, offset)
        yield
        outcome = {"ok": "ok", "fail": "fail"}.get(fate, "unknown")
        self.events.ends(outcome, (name, GROUP, {key: offset}))

    def find_committed(self) -> Iterator[None]:
        self.events.begins("committed", ("committed", GROUP))
        yield
        found = dict(self.cluster.committed)
        yield
        self.events.ends("ok", ("committed", GROUP, found))


class Copier(ModelClient):
    """Copies one log to the other, in transactions that also commit its offset. A new client waits for the
    outcome of the last transaction, and goes on where the group is."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.group_offset = self.position = 0

    def operations(self) -> list[Callable[[], Iterator[None]]]:
        return [self.copy]

    def crash(self) -> None:
        self.events.crashes()
        self.running = None
        if self.transaction:
            self._end(is_committed=self.is_committing and self.random.random() < 0.5)
        self.position = self.group_offset

    def _end(self, is_committed: bool) -> None:
        assert self.transaction
        self.cluster.end(self.transaction, "committed" if is_committed else "aborted")
        self.transaction = None
        if is_committed:
            self.group_offset = self.position
        else:
            self.position = self.group_offset

    def copy(self) -> Iterator[None]:
        records = self.cluster.read(KEY, self.position)[:POLL_RECORDS_MAX]
        if not records:
            yield
            return
        end = records[-1][0] + 1
        values = [self.model.new_value() for _ in records]
        is_commit = self.random.random() < 0.8
        commit = ("commit", COPIERS, {KEY: end})
        polled = ("poll", {KEY: records})
        sends: list[tuple[Any, ...]] = [("send", OTHER_KEY, value) for value in values]
        self.events.begins("txn", polled, *sends, commit, commit=is_commit)
        self.transaction, self.is_committing, self.position = Transaction(), False, end
        for place, value in enumerate(values):
            yield
            offset = self.cluster.append(OTHER_KEY, value, self.transaction)
            sends[place] = ("send", OTHER_KEY, (offset, value))
        self.is_committing = is_commit
        yield
        outcome = self.random.choice(["ok", "ok", "ok", "unknown", "fail"])
        is_certain = outcome == "ok" or self.random.random() < 0.5
        self._end(is_commit and outcome != "fail" and is_certain)
        self.events.ends(outcome, polled, *sends, commit)


class Model:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.story = Story()
        self.cluster = Cluster()
        self._values = 0
        self._later: list[Callable[[], Any]] = []

    def new_value(self) -> int:
        self._values += 1
        return self._values

    def later(self, function: Callable[..., Any], *arguments: Any) -> None:
        """A request that is still in the network."""
        self._later.append(lambda: function(*arguments))

    def _land(self) -> None:
        self._later.pop(self.random.randrange(len(self._later)))()

    def run(self, steps: int) -> History:
        clients = [Copier(self), *(ModelClient(self) for _ in range(CLIENTS))]
        for _ in range(steps):
            chance = self.random.random()
            if chance < 0.05 and self._later:
                self._land()
            elif chance < 0.07:
                self.random.choice(clients).crash()
            else:
                self.random.choice(clients).step()
        for client in clients:
            client.crash()
        while self._later:
            self._land()
        self._read_everything()
        return self.story.history

    def _read_everything(self) -> None:
        reader = self.story.client()
        reader.assigns(*KEYS)
        for key in KEYS:
            reader.seeks(0, key)
            records = self.cluster.read(key, 0)
            for first in range(0, len(records), POLL_RECORDS_MAX):
                reader.polls(*records[first : first + POLL_RECORDS_MAX], key=key)
        last_commit = max(self.cluster.progress[KEY], self.cluster.committed[KEY] or 0) + 1
        reader.commits(last_commit)
        reader.finds_committed(last_commit)
