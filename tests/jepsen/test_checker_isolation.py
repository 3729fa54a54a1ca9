"""Stories of transactions that show what they must not show."""

import pytest
from tests.jepsen.checker import Kind, Rules
from tests.jepsen.story import KEY, OTHER_KEY, Story, polled, sent

UNCOMMITTED = Rules(read_committed=False)

# ---- aborted reads


def test_a_value_of_an_aborted_transaction_is_read() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.aborts(sent(1, at=0))
    reader.polls((0, 1))
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.ABORTED_READ]
    assert [operation.process for operation in verdict.findings[0].operations] == [0, 1]
    assert story.kinds(UNCOMMITTED) == []


@pytest.mark.parametrize("outcome", ["ok", "fail", "unknown"])
def test_what_was_meant_to_be_aborted_is_aborted_however_that_ended(outcome: str) -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.aborts(sent(1, at=0), outcome=outcome)
    reader.polls((0, 1))
    assert story.kinds() == [Kind.ABORTED_READ]


def test_a_client_that_was_killed_before_its_abort_has_aborted() -> None:
    story = Story()
    killed, reader = story.clients(2)
    killed.begins("txn", sent(1), commit=False)
    reader.polls((0, 1))
    assert story.kinds() == [Kind.ABORTED_READ]


def test_a_value_of_a_transaction_that_failed_is_read() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=0), outcome="fail")
    reader.polls((0, 1))
    assert story.kinds() == [Kind.ABORTED_READ]


def test_a_value_of_a_send_that_failed_is_read() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, outcome="fail")
    reader.polls((0, 1))
    assert story.kinds() == [Kind.ABORTED_READ]
    assert story.kinds(UNCOMMITTED) == [Kind.ABORTED_READ]


def test_an_aborted_value_is_found_also_if_its_reader_aborts() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.aborts(sent(1, at=0))
    reader.aborts(polled((0, 1)))
    assert story.kinds() == [Kind.ABORTED_READ]


def test_one_reader_of_an_aborted_value_does_not_make_the_others_skip() -> None:
    story = Story()
    writer, other_writer, reader, other_reader = story.clients(4)
    writer.aborts(sent(1, at=1))
    other_writer.sends(2, at=0)
    other_writer.sends(3, at=3)
    reader.polls((0, 2), (1, 1), (3, 3))
    other_reader.polls((0, 2), (3, 3))
    assert story.kinds() == [Kind.ABORTED_READ]


def test_values_of_unknown_transactions_may_be_read() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=0), outcome="unknown")
    reader.polls((0, 1))
    assert story.kinds() == []


# ---- precommitted reads


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
def test_a_transaction_reads_its_own_value(outcome: str) -> None:
    story = Story()
    client, reader = story.clients(2)
    client.transaction(sent(1, at=0), polled((0, 1)), outcome=outcome)
    reader.polls((0, 1))
    assert story.kinds() == [Kind.PRECOMMITTED_READ]
    assert story.kinds(UNCOMMITTED) == []


def test_that_a_transaction_read_its_own_value_does_not_prove_its_commit() -> None:
    story = Story()
    client = story.client()
    client.transaction(sent(1), sent(2), polled((0, 1)), outcome="unknown")
    client.transaction(sent(3, at=3), polled((3, 3)))
    assert story.kinds() == [Kind.UNSEEN, Kind.PRECOMMITTED_READ, Kind.PRECOMMITTED_READ]
    assert story.kinds(UNCOMMITTED) == []


def test_a_client_reads_its_own_value_in_the_next_transaction() -> None:
    story = Story()
    client = story.client()
    client.transaction(sent(1, at=0))
    client.transaction(polled((0, 1)), sent(2, at=2))
    client.polls((2, 2))
    assert story.kinds() == []


# ---- circles


def test_two_transactions_that_read_from_each_other() -> None:
    story = Story()
    client, other = story.clients(2)
    client.transaction(sent(1, at=0), polled((0, 2), key=OTHER_KEY))
    other.transaction(sent(2, at=0, key=OTHER_KEY), polled((0, 1)))
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.CIRCULAR_READ]
    assert verdict.findings[0].key == f"{KEY}, {OTHER_KEY}"
    assert {operation.process for operation in verdict.findings[0].operations} == {0, 1}
    assert story.kinds(UNCOMMITTED) == []


def test_a_circle_of_three_transactions_and_an_unknown_one() -> None:
    story = Story()
    first, second, third, bystander = story.clients(4)
    bystander.transaction(sent(9, at=9), polled((0, 1), (2, 2), (4, 3)))
    first.transaction(sent(1, at=0), polled((4, 3), (9, 9)))
    second.transaction(sent(2, at=2), polled((0, 1)))
    third.transaction(sent(3, at=4), polled((2, 2)), outcome="unknown")
    verdict = story.verdict()
    assert verdict.kinds == {Kind.CIRCULAR_READ}
    assert len(verdict.findings) == 1


def test_every_circle_is_found() -> None:
    story = Story()
    clients = story.clients(4)
    for pair_of_clients, value in (clients[:2], 10), (clients[2:], 20):
        one, other = pair_of_clients
        one.transaction(sent(value, at=value), polled((value + 1, value + 1)))
        other.transaction(sent(value + 1, at=value + 1), polled((value, value)))
    assert story.kinds() == [Kind.CIRCULAR_READ, Kind.CIRCULAR_READ]


def test_transactions_may_be_mixed_in_a_log() -> None:
    """No circle: the second one reads from the first, although one of its own records is before it."""
    story = Story()
    client, other = story.clients(2)
    other.begins("txn", sent(3), sent(4))
    client.transaction(sent(1, at=1), sent(2, at=3))
    other.ends("ok", sent(3, at=0), polled((1, 1)), sent(4, at=2))
    client.polls((0, 3), (1, 1), (2, 4), (3, 2))
    assert story.kinds() == []


def test_a_chain_of_copies_is_no_circle() -> None:
    story = Story()
    client, other, last = story.clients(3)
    client.transaction(sent(1, at=0))
    other.transaction(polled((0, 1)), sent(2, at=2))
    client.transaction(polled((2, 2)), sent(3, at=4))
    last.polls((0, 1), (2, 2), (4, 3))
    assert story.kinds() == []
