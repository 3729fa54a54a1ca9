"""Stories of records of one process that are out of order, and of some that may be."""

import pytest
from tests.jepsen.checker import Kind, Rules
from tests.jepsen.story import OTHER_KEY, Story, sent

REORDERING = Rules(idempotent=False)


def test_the_next_send_is_acknowledged_below_the_last_one() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=5)
    writer.sends(2, at=3)
    reader.polls((3, 2), (5, 1))
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.NONMONOTONIC_SEND]
    assert [operation.value[0][2] for operation in verdict.findings[0].operations] == [(5, 1), (3, 2)]
    assert story.kinds(REORDERING) == []


def test_the_places_are_known_from_a_reader() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1)
    writer.sends(2, outcome="unknown")
    reader.polls((0, 2), (1, 1))
    assert story.kinds() == [Kind.NONMONOTONIC_SEND]


def test_sends_of_one_transaction_are_out_of_order() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=1), sent(2, at=0))
    reader.polls((0, 2), (1, 1))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_SEND]
    assert story.kinds(REORDERING) == []


def test_sends_of_one_unknown_transaction_are_out_of_order() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1), sent(9, key=OTHER_KEY), sent(2), outcome="unknown")
    reader.polls((0, 2), (1, 1))
    reader.polls((0, 9), key=OTHER_KEY)
    assert story.kinds() == [Kind.INT_NONMONOTONIC_SEND]


@pytest.mark.parametrize("outcome", ["ok", "fail"])
def test_acknowledged_records_of_aborted_transactions_are_in_order_too(outcome: str) -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.aborts(sent(1, at=5), outcome=outcome)
    writer.sends(2, at=3)
    reader.polls((3, 2))
    assert story.kinds() == [Kind.NONMONOTONIC_SEND]


def test_every_send_is_behind_every_send_of_earlier_operations() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=4), sent(2, at=5))
    writer.transaction(sent(3, at=7), sent(4, at=2))
    reader.polls((2, 4), (4, 1), (5, 2), (7, 3))
    assert sorted(story.kinds()) == [Kind.INT_NONMONOTONIC_SEND, Kind.NONMONOTONIC_SEND]


def test_the_highest_record_of_earlier_operations_counts() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=9), sent(2, at=5))
    writer.sends(3, at=7)
    reader.polls((5, 2), (7, 3), (9, 1))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_SEND, Kind.NONMONOTONIC_SEND]


def test_a_new_client_of_the_process_writes_behind_the_old_one() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=5)
    writer.crashes()
    writer.sends(2, at=3)
    reader.polls((3, 2), (5, 1))
    assert story.kinds() == [Kind.NONMONOTONIC_SEND]


def test_an_unknown_send_does_not_hide_what_was_acknowledged_before() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=5)
    writer.sends(2, outcome="unknown")
    writer.sends(3, at=4)
    reader.polls((4, 3), (5, 1))
    assert story.kinds() == [Kind.NONMONOTONIC_SEND]


def test_an_unknown_send_may_land_behind_later_ones() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    writer.sends(2, outcome="unknown")
    writer.crashes()
    writer.sends(3, at=1)
    writer.sends(4, at=2)
    reader.polls((0, 1), (1, 3), (2, 4), (3, 2))
    assert story.kinds() == []


def test_other_processes_and_other_logs_have_orders_of_their_own() -> None:
    story = Story()
    writer, other, reader = story.clients(3)
    writer.sends(1, at=5)
    other.sends(2, at=3)
    writer.sends(3, at=0, key=OTHER_KEY)
    other.sends(4, at=8)
    writer.sends(5, at=7)
    reader.polls((3, 2), (5, 1), (7, 5), (8, 4))
    reader.polls((0, 3), key=OTHER_KEY)
    assert story.kinds() == []


# ---- sends that are in flight at the same time


def test_sends_in_flight_are_out_of_order() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends_together(sent(1, at=1), sent(2, at=0))
    reader.polls((0, 2), (1, 1))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_SEND]
    assert story.kinds(REORDERING) == []


def test_an_unknown_send_in_flight_cannot_overtake_either() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends_together((*sent(1), "unknown"), (*sent(2, at=0), "ok"), outcome="unknown")
    reader.polls((0, 2), (1, 1))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_SEND]


def test_the_next_operation_is_behind_what_was_acknowledged_but_not_behind_what_is_unknown() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends_together((*sent(1, at=0), "ok"), (*sent(2), "unknown"), outcome="unknown")
    writer.sends(3, at=1)
    reader.polls((0, 1), (1, 3), (2, 2))
    assert story.kinds() == []
    writer.sends_together((*sent(4, at=9), "ok"), (*sent(5), "unknown"), outcome="unknown")
    writer.sends(6, at=8)
    reader.polls((8, 6), (9, 4))
    assert story.kinds() == [Kind.NONMONOTONIC_SEND]
