"""Changes that make a legal history illegal: for every kind of finding one way in which it can come about.

A change works on a copy of the history. It raises NotPossible if the history has nothing to which it could be
done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from tests.jepsen.checker import Kind
from tests.jepsen.history import History, Operation
from tests.jepsen.story import COPIERS, GROUP, KEY

FAR_OFFSET = 1_000_000
UNSENT_VALUE = 1_000_000
T = TypeVar("T")


class NotPossible(Exception):
    pass


@dataclass(slots=True, eq=False)
class Send:
    operation: Operation
    micro: list[Any]  # ["send", key, [offset, value]] or ["send", key, value], and perhaps its outcome

    @property
    def key(self) -> str:
        return str(self.micro[1])

    @property
    def value(self) -> int:
        sent = self.micro[2]
        return int(sent[1] if isinstance(sent, list) else sent)

    @property
    def outcome(self) -> str:
        return str(self.micro[3] if len(self.micro) > 3 else self.operation.type)

    @property
    def is_committed(self) -> bool:
        return self.outcome == "ok" and self.operation.commit


@dataclass(slots=True, eq=False)
class Poll:
    operation: Operation
    key: str
    records: list[list[int]]


class Draft:
    """A history that can be changed."""

    def __init__(self, history: History, random: Random) -> None:
        self.random = random
        self.history = [replace(operation, value=_as_lists(operation.value)) for operation in history]
        completions = [operation for operation in self.history if operation.type != "invoke"]
        self.sends = [Send(operation, micro) for operation, micro in _micro(completions, "send")]
        self.polls = [
            Poll(operation, key, records)
            for operation, micro in _micro(_last_events(self.history), "poll")
            if len(micro) > 1
            for key, records in micro[1].items()
        ]
        self.final_process = self.history[-1].process

    def choose(self, choices: list[T]) -> T:
        if not choices:
            raise NotPossible
        return self.random.choice(choices)

    def readers(self, value: int) -> list[Poll]:
        return [poll for poll in self.polls if any(record[1] == value for record in poll.records)]

    def offset_of(self, value: int) -> int | None:
        """Where it was read."""
        for poll in self.readers(value):
            return next(offset for offset, each in poll.records if each == value)
        return None

    def highest_read(self, key: str) -> int:
        return max((poll.records[-1][0] for poll in self.polls if poll.key == key), default=-1)

    def hide(self, value: int) -> None:
        for poll in self.readers(value):
            poll.records[:] = [record for record in poll.records if record[1] != value]

    def final_polls(self) -> list[Poll]:
        return [poll for poll in self.polls if poll.operation.process == self.final_process]

    def read_at_the_end(self, key: str, value: int) -> None:
        """The last reader finds one more value at the end of the log."""
        polls = [poll for poll in self.final_polls() if poll.key == key]
        if not polls:
            raise NotPossible
        polls[-1].records.append([FAR_OFFSET, value])


def _last_events(history: History) -> list[Operation]:
    """The event that says most about each operation: its completion, or its invocation if there is none."""
    last = []
    open_: dict[int, Operation] = {}
    for operation in history:
        unfinished = open_.pop(operation.process, None)
        if operation.function == "crash" and unfinished:
            last.append(unfinished)
        if operation.type == "invoke":
            open_[operation.process] = operation
        else:
            last.append(operation)
    return [*last, *open_.values()]


def _as_lists(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_as_lists(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_lists(each) for key, each in value.items()}
    return value


def _micro(operations: list[Operation], name: str) -> Iterator[tuple[Operation, list[Any]]]:
    for operation in operations:
        if operation.function in ("send", "poll", "txn"):
            for micro in operation.value:
                if micro[0] == name:
                    yield operation, micro


# ---- what the logs hold


def lose_a_write(draft: Draft) -> None:
    def is_followed(send: Send) -> bool:
        offset = draft.offset_of(send.value)
        return offset is not None and offset < draft.highest_read(send.key) and send.micro[2][0] is not None

    draft.hide(draft.choose([send for send in draft.sends if send.is_committed and is_followed(send)]).value)


def forget_the_end(draft: Draft) -> None:
    def is_last(send: Send) -> bool:
        offset = draft.offset_of(send.value)
        return offset is not None and offset == draft.highest_read(send.key)

    draft.hide(draft.choose([send for send in draft.sends if send.is_committed and is_last(send)]).value)


def tear_a_transaction(draft: Draft) -> None:
    seen = defaultdict(list)
    for send in draft.sends:
        is_unknown = send.operation.type == "unknown" and send.operation.commit
        if send.operation.function == "txn" and is_unknown and draft.readers(send.value):
            seen[send.operation.index].append(send)
    draft.hide(draft.choose(draft.choose([sends for sends in seen.values() if len(sends) > 1])).value)


def show_two_values_at_one_offset(draft: Draft) -> None:
    others = [poll for poll in draft.polls if poll.operation.process != draft.final_process]
    records = draft.choose([poll for poll in others if len(poll.records) > 1]).records
    records[0][1], records[1][1] = records[1][1], records[0][1]


def repeat_a_value(draft: Draft) -> None:
    send = draft.choose([send for send in draft.sends if draft.readers(send.value)])
    draft.read_at_the_end(send.key, send.value)


def invent_a_value(draft: Draft) -> None:
    draft.read_at_the_end(draft.choose(draft.final_polls()).key, UNSENT_VALUE)


# ---- what transactions show


def show_an_aborted_value(draft: Draft) -> None:
    aborted = [send for send in draft.sends if send.outcome == "fail" or not send.operation.commit]
    send = draft.choose(aborted)
    draft.read_at_the_end(send.key, send.value)


def show_a_transaction_its_own_value(draft: Draft) -> None:
    send = draft.choose([send for send in draft.sends if send.operation.function == "txn"])
    send.operation.value.append(["poll", {send.key: [[FAR_OFFSET, send.value]]}])


def let_transactions_read_from_each_other(draft: Draft) -> None:
    sends = [send for send in draft.sends if send.operation.function == "txn" and send.is_committed]
    one = draft.choose(sends)
    other = draft.choose([send for send in sends if send.operation is not one.operation])
    for writer, reader in (one, other), (other, one):
        offset = draft.offset_of(writer.value)
        reader.operation.value.append(["poll", {writer.key: [[offset, writer.value]]}])


# ---- the order of reading


def _read_by_others(draft: Draft, poll: Poll, value: int) -> bool:
    return any(other.operation is not poll.operation for other in draft.readers(value))


def skip_inside_a_poll(draft: Draft) -> None:
    choices = [
        (poll, place)
        for poll in draft.polls
        for place in range(1, len(poll.records) - 1)
        if _read_by_others(draft, poll, poll.records[place][1])
    ]
    poll, place = draft.choose(choices)
    del poll.records[place]


def go_back_inside_a_poll(draft: Draft) -> None:
    draft.choose([poll for poll in draft.polls if len(poll.records) > 1]).records.reverse()


def skip_at_the_start_of_a_poll(draft: Draft) -> None:
    choices = [
        poll
        for poll in draft.final_polls()
        if len(poll.records) > 1 and _read_by_others(draft, poll, poll.records[0][1])
    ]
    del draft.choose(choices).records[0]


def go_back_from_poll_to_poll(draft: Draft) -> None:
    polls = draft.final_polls()
    followed = [(one, other) for one, other in pairwise(polls) if one.key == other.key]
    before, after = draft.choose(followed)
    after.records.insert(0, list(before.records[-1]))


# ---- the order of sending


def _swap_two_sends(draft: Draft, is_inside: bool) -> None:
    """Exchanges the places of two values of one process, wherever anybody saw them."""
    sends = [send for send in draft.sends if send.is_committed and draft.readers(send.value)]
    one, other = draft.choose(
        [
            (one, other)
            for one in sends
            for other in sends
            if one is not other and (one.operation.process, one.key) == (other.operation.process, other.key)
            if (one.operation is other.operation) == is_inside
        ]
    )
    exchanged = {one.value: other.value, other.value: one.value}
    one.micro[2][0], other.micro[2][0] = other.micro[2][0], one.micro[2][0]
    for poll in draft.polls:
        for record in poll.records:
            record[1] = exchanged.get(record[1], record[1])


def swap_sends_of_two_operations(draft: Draft) -> None:
    _swap_two_sends(draft, is_inside=False)


def swap_sends_of_one_transaction(draft: Draft) -> None:
    _swap_two_sends(draft, is_inside=True)


# ---- groups


def forget_a_commit(draft: Draft) -> None:
    """The last operation of all is a read of the offset that was committed just before."""
    draft.history[-1].value = [["committed", GROUP, {KEY: None}]]


# ---- groups that process every record once


def _copies(draft: Draft) -> list[Operation]:
    return [
        operation
        for operation in draft.history
        if operation.function == "txn" and (operation.type, operation.commit) == ("ok", True)
        if any(micro[:2] == ["commit", COPIERS] for micro in operation.value)
    ]


def process_a_record_again(draft: Draft) -> None:
    copies = _copies(draft)
    one = draft.choose(copies)
    other = draft.choose([copy for copy in copies if copy.index > one.index])
    other.value[0][1][KEY].insert(0, list(one.value[0][1][KEY][0]))


def process_a_record_never(draft: Draft) -> None:
    polls = [copy.value[0][1][KEY] for copy in _copies(draft)]
    final = {value for poll in draft.final_polls() for _, value in poll.records}
    records = draft.choose([records for records in polls if records[0][1] in final])
    del records[0]


MUTATIONS: dict[Kind, Callable[[Draft], None]] = {
    Kind.LOST_WRITE: lose_a_write,
    Kind.UNSEEN: forget_the_end,
    Kind.TORN_TRANSACTION: tear_a_transaction,
    Kind.INCONSISTENT_OFFSETS: show_two_values_at_one_offset,
    Kind.DUPLICATE: repeat_a_value,
    Kind.UNSENT_READ: invent_a_value,
    Kind.ABORTED_READ: show_an_aborted_value,
    Kind.PRECOMMITTED_READ: show_a_transaction_its_own_value,
    Kind.CIRCULAR_READ: let_transactions_read_from_each_other,
    Kind.INT_POLL_SKIP: skip_inside_a_poll,
    Kind.INT_NONMONOTONIC_POLL: go_back_inside_a_poll,
    Kind.POLL_SKIP: skip_at_the_start_of_a_poll,
    Kind.NONMONOTONIC_POLL: go_back_from_poll_to_poll,
    Kind.INT_NONMONOTONIC_SEND: swap_sends_of_one_transaction,
    Kind.NONMONOTONIC_SEND: swap_sends_of_two_operations,
    Kind.NONMONOTONIC_COMMIT: forget_a_commit,
    Kind.PROCESSED_TWICE: process_a_record_again,
    Kind.PROCESSED_NEVER: process_a_record_never,
}


def mutate(history: History, kind: Kind, random: Random) -> History:
    draft = Draft(history, random)
    MUTATIONS[kind](draft)
    return draft.history
