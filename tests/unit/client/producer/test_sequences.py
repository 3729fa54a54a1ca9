"""Sequence numbers: whatever goes wrong, the broker writes every record once and in order."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.errors import ErrorCode
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.sequences import SEQUENCE_MASK, SequenceBook
from barnabas.client.types import TopicPartition

KEY = TopicPartition("t", 0)


def batch_of(count: int) -> ProducerBatch:
    batch = ProducerBatch(KEY, 10**6, 0.0)
    for _ in range(count):
        batch.append(0, None, b"v")
    batch.close()
    return batch


def book_of(is_transactional: bool = False) -> SequenceBook:
    book = SequenceBook(is_transactional)
    book.begin(7, 0)
    return book


class Broker:
    """A partition that accepts the batches of one producer by Kafka's rules."""

    def __init__(self) -> None:
        self.log: list[ProducerBatch] = []
        self.epoch = -1
        self.next = 0
        self.recent: list[tuple[int, int]] = []

    def produce(self, batch: ProducerBatch, epoch: int, sequence: int) -> ErrorCode:
        if epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch == self.epoch and (sequence, batch.count) in self.recent:
            return ErrorCode.NONE
        # As in Kafka: an unknown producer may begin with any sequence.
        if self.epoch >= 0 and sequence != (self.next if epoch == self.epoch else 0):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if epoch != self.epoch:
            self.epoch, self.recent = epoch, []
        self.log.append(batch)
        self.next = (sequence + batch.count) & SEQUENCE_MASK
        self.recent = [*self.recent, (sequence, batch.count)][-5:]
        return ErrorCode.NONE


def drive(counts: list[int], seed: int) -> tuple[list[ProducerBatch], Broker]:
    """Send batches with up to five in flight. Requests and answers are lost at random and then retried."""
    chance = random.Random(seed)
    book, broker = book_of(), Broker()
    batches = [batch_of(count) for count in counts]
    queue, wire = list(batches), []
    done = 0
    while done < len(batches):
        if book.to_restart and not wire:
            book.begin(book.producer_id, book.epoch + 1)
            book.restart(set(book.to_restart))
        while queue and len(wire) < 5 and book.may_send(KEY, queue[0]):
            batch = queue.pop(0)
            batch.attempts += 1
            book.sending(KEY, batch)
            wire.append(batch)
        assert wire, "nothing can be sent any more"
        # A connection keeps the order. When it breaks, the outcome of everything in flight is unknown.
        breaks_at = chance.randrange(len(wire)) if chance.random() < 0.3 else len(wire)
        arrived = len(wire) if chance.random() < 0.5 else breaks_at
        answers = [broker.produce(each, each.producer_epoch, each.base_sequence) for each in wire[:arrived]]
        answers += [ErrorCode.NETWORK_EXCEPTION] * (len(wire) - arrived)
        for place in range(breaks_at, len(wire)):
            answers[place] = ErrorCode.NETWORK_EXCEPTION
        again = []
        for batch, answer in zip(wire, answers, strict=True):
            if answer is ErrorCode.NONE:
                book.acknowledged(KEY, batch, 0)
                done += 1
            else:
                assert book.can_retry(KEY, batch, answer, 0)
                again.append(batch)
        queue[:0] = again
        wire = []
    return batches, broker


@settings(max_examples=200)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.integers(0, 2**32))
def test_every_batch_is_written_once_and_in_order(counts: list[int], seed: int) -> None:
    batches, broker = drive(counts, seed)
    assert broker.log == batches
    assert broker.epoch == 0


def test_sequences_wrap_around() -> None:
    book = book_of()
    sequences = book.of(KEY)
    sequences.next = SEQUENCE_MASK
    last, first = batch_of(2), batch_of(1)
    book.sending(KEY, last)
    book.sending(KEY, first)
    assert (last.base_sequence, first.base_sequence) == (SEQUENCE_MASK, 1)
    book.acknowledged(KEY, last, 0)
    assert sequences.expected == 1


def test_a_retry_goes_alone_and_first() -> None:
    book = book_of()
    first, second, third = batch_of(1), batch_of(1), batch_of(1)
    for batch in (first, second):
        batch.attempts = 1
        book.sending(KEY, batch)
    assert not book.may_send(KEY, second)
    assert book.may_send(KEY, first)
    first.attempts = 2
    assert not book.may_send(KEY, third)
    book.acknowledged(KEY, first, 0)
    assert book.may_send(KEY, second)


def test_after_a_refused_batch_the_later_ones_are_numbered_from_zero() -> None:
    book = book_of()
    refused, later = batch_of(3), batch_of(2)
    book.sending(KEY, refused)
    book.sending(KEY, later)
    book.failed(KEY, refused, was_refused=True)
    assert book.to_restart == {KEY}
    assert not book.may_send(KEY, later)
    book.begin(7, 1)
    book.restart({KEY})
    assert (later.base_sequence, later.producer_epoch) == (0, 1)
    assert book.may_send(KEY, later)


def test_the_later_batches_show_whether_an_expired_one_was_written() -> None:
    book = book_of()
    expired, later = batch_of(3), batch_of(2)
    book.sending(KEY, expired)
    book.sending(KEY, later)
    book.failed(KEY, expired, was_refused=False)
    assert not book.may_send(KEY, batch_of(1))
    book.acknowledged(KEY, later, 0)
    assert not book.to_restart
    assert book.may_send(KEY, batch_of(1))


def test_an_expired_batch_with_none_after_it_leads_to_a_new_numbering() -> None:
    book = book_of()
    expired = batch_of(3)
    book.sending(KEY, expired)
    book.failed(KEY, expired, was_refused=False)
    assert book.to_restart == {KEY}


@pytest.mark.parametrize(
    ("is_transactional", "acked_offset", "may_retry"), [(False, 9, True), (True, 9, False), (True, 3, True)]
)
def test_a_broker_that_forgot_the_producer(
    is_transactional: bool, acked_offset: int, may_retry: bool
) -> None:
    book = book_of(is_transactional)
    batch = batch_of(1)
    book.sending(KEY, batch)
    book.of(KEY).acked_offset = acked_offset
    assert book.can_retry(KEY, batch, ErrorCode.UNKNOWN_PRODUCER_ID, 5) is may_retry
    assert (KEY in book.to_restart) is may_retry


def test_a_gap_is_retried_unless_the_batch_is_the_next_one_of_a_transaction() -> None:
    for is_transactional, may_retry in ((False, True), (True, False)):
        book = book_of(is_transactional)
        first, second = batch_of(1), batch_of(1)
        book.sending(KEY, first)
        book.sending(KEY, second)
        assert book.can_retry(KEY, second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
        assert not book.to_restart
        assert book.can_retry(KEY, first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0) is may_retry
        assert bool(book.to_restart) is may_retry


def test_the_parts_of_a_split_batch_share_its_sequences() -> None:
    book = book_of()
    whole, later = batch_of(4), batch_of(1)
    book.sending(KEY, whole)
    book.sending(KEY, later)
    parts = [batch_of(3), batch_of(1)]
    book.split(KEY, whole, parts)
    assert [part.base_sequence for part in parts] == [0, 3]
    assert book.of(KEY).in_flight == [*parts, later]


def test_a_new_epoch_waits_until_the_old_one_is_done() -> None:
    book = book_of()
    old, new = batch_of(2), batch_of(1)
    book.sending(KEY, old)
    book.begin(7, 1)
    assert not book.may_send(KEY, new)
    book.acknowledged(KEY, old, 0)
    assert book.may_send(KEY, new)
    book.sending(KEY, new)
    assert (new.producer_epoch, new.base_sequence) == (1, 0)


def test_no_second_batch_is_sent_until_the_first_is_confirmed() -> None:
    book, first, second = book_of(), batch_of(3), batch_of(2)
    assert book.may_send(KEY, first)
    book.sending(KEY, first)
    first.attempts = 1
    assert not book.may_send(KEY, second)
    book.acknowledged(KEY, first, 0)
    assert book.may_send(KEY, second)
    book.sending(KEY, second)
    assert book.may_send(KEY, batch_of(1))


def test_a_batch_that_a_later_one_overtook_leads_to_a_new_numbering() -> None:
    for is_transactional in (False, True):
        book, first, second = book_of(is_transactional), batch_of(3), batch_of(2)
        for batch in (first, second):
            book.sending(KEY, batch)
        book.acknowledged(KEY, second, 0)
        assert book.can_retry(KEY, first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0) is not is_transactional
        assert (KEY in book.to_restart) is not is_transactional
