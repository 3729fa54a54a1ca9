"""Stories of consumers that skip records or go back, and of some that may."""

import pytest
from tests.jepsen.checker import Kind
from tests.jepsen.story import KEY, OTHER_KEY, Client, Story, polled, rebalanced


def story_of_five_values() -> tuple[Story, Client]:
    """The values 1 to 5 are at the offsets 0, 1, 2, 3 and 7, and one reader has read all of them."""
    story = Story()
    writer, reader, consumer = story.clients(3)
    for value, offset in enumerate((0, 1, 2, 3, 7), start=1):
        writer.sends(value, at=offset)
    reader.polls((0, 1), (1, 2), (2, 3), (3, 4), (7, 5))
    return story, consumer


# ---- inside one operation


def test_one_poll_skips_a_value() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1), (2, 3))
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.INT_POLL_SKIP]
    assert "without 1 (value 2)" in verdict.findings[0].text


def test_two_polls_of_one_transaction_skip_a_value() -> None:
    story, consumer = story_of_five_values()
    consumer.transaction(polled((0, 1)), polled((3, 4)))
    assert story.kinds() == [Kind.INT_POLL_SKIP]


def test_a_skip_in_an_aborted_transaction_is_a_skip() -> None:
    story, consumer = story_of_five_values()
    consumer.aborts(polled((0, 1)), polled((3, 4)))
    assert story.kinds() == [Kind.INT_POLL_SKIP]


def test_one_poll_goes_back() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1), (1, 2), (0, 1), (1, 2))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_POLL]


def test_one_poll_returns_a_value_twice() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1), (0, 1))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_POLL]


def test_one_poll_of_a_subscriber_goes_back() -> None:
    """A rebalance comes between polls, not inside one."""
    story, consumer = story_of_five_values()
    consumer.subscribes()
    consumer.polls((1, 2), (0, 1))
    consumer.polls((0, 1), (3, 4))
    assert story.kinds() == [Kind.INT_NONMONOTONIC_POLL, Kind.INT_POLL_SKIP]


def test_a_gap_without_a_value_is_no_skip() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((2, 3), (3, 4), (7, 5))
    assert story.kinds() == []


def test_the_logs_of_one_poll_have_nothing_to_do_with_each_other() -> None:
    story, consumer = story_of_five_values()
    story.client().sends(11, at=0, key=OTHER_KEY)
    consumer.transaction(polled((0, 1)), polled((0, 11), key=OTHER_KEY), polled((1, 2)))
    assert story.kinds() == []


# ---- from one operation to the next


def test_the_next_poll_skips_a_value() -> None:
    story, consumer = story_of_five_values()
    consumer.assigns()
    consumer.polls((0, 1), (1, 2))
    consumer.polls((3, 4))
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.POLL_SKIP]
    assert [operation.process for operation in verdict.findings[0].operations] == [2, 2, 1]


def test_the_next_poll_goes_back() -> None:
    story, consumer = story_of_five_values()
    consumer.assigns()
    consumer.polls((0, 1), (1, 2))
    consumer.polls((1, 2), (2, 3))
    assert story.kinds() == [Kind.NONMONOTONIC_POLL]


def test_an_empty_poll_between_does_not_hide_it() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1), (1, 2))
    consumer.polls()
    consumer.polls(outcome="fail")
    consumer.polls((3, 4))
    assert story.kinds() == [Kind.POLL_SKIP]


def test_a_skip_between_a_poll_and_a_transaction() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1))
    consumer.transaction(polled((2, 3)))
    assert story.kinds() == [Kind.POLL_SKIP]


def test_other_consumers_have_positions_of_their_own() -> None:
    story, consumer = story_of_five_values()
    other = story.client()
    consumer.polls((0, 1))
    other.polls((2, 3))
    consumer.polls((1, 2))
    other.polls((3, 4))
    assert story.kinds() == []


# ---- seek


def test_a_poll_after_a_seek_skips_a_value() -> None:
    story, consumer = story_of_five_values()
    consumer.assigns()
    consumer.seeks(0)
    consumer.polls((1, 2), (2, 3))
    assert story.kinds() == [Kind.POLL_SKIP]


def test_a_poll_after_a_seek_begins_too_early() -> None:
    story, consumer = story_of_five_values()
    consumer.seeks(2)
    consumer.polls((1, 2), (2, 3))
    assert story.kinds() == [Kind.NONMONOTONIC_POLL]


def test_a_seek_may_go_back_or_forward() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1), (1, 2), (2, 3))
    consumer.seeks(0)
    consumer.polls((0, 1))
    consumer.seeks(5)
    consumer.polls((7, 5))
    assert story.kinds() == []


def test_a_seek_that_failed_changes_nothing() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1), (1, 2))
    consumer.seeks(0, outcome="fail")
    consumer.polls((0, 1))
    assert story.kinds() == [Kind.NONMONOTONIC_POLL]


def test_after_an_unknown_seek_the_position_is_unknown() -> None:
    for records in [(0, 1)], [(2, 3)], [(7, 5)]:
        story, consumer = story_of_five_values()
        consumer.polls((0, 1), (1, 2))
        consumer.seeks(0, outcome="unknown")
        consumer.polls(*records)
        assert story.kinds() == []


# ---- what may move a consumer


@pytest.mark.parametrize("offset_and_value", [(0, 1), (3, 4)])
def test_assign_subscribe_and_crash_forget_the_position(offset_and_value: tuple[int, int]) -> None:
    for move in Client.assigns, Client.subscribes, Client.crashes:
        story, consumer = story_of_five_values()
        consumer.assigns()
        consumer.polls((0, 1), (1, 2))
        move(consumer)
        consumer.polls(offset_and_value)
        assert story.kinds() == []


def test_an_assign_that_failed_forgets_nothing() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1))
    consumer.assigns(outcome="fail")
    consumer.polls((2, 3))
    assert story.kinds() == [Kind.POLL_SKIP]


def test_a_subscriber_may_skip_and_go_back_between_polls() -> None:
    story, consumer = story_of_five_values()
    consumer.subscribes()
    consumer.polls((0, 1), (1, 2))
    consumer.polls((3, 4))
    consumer.polls((0, 1))
    consumer.transaction(polled((2, 3)), polled((1, 2)), polled((3, 4)))
    assert story.kinds() == []


def test_a_client_that_assigns_after_it_was_subscribed_may_not() -> None:
    story, consumer = story_of_five_values()
    consumer.subscribes()
    consumer.polls((0, 1))
    consumer.assigns()
    consumer.polls((0, 1))
    consumer.polls((2, 3))
    assert story.kinds() == [Kind.POLL_SKIP]


def test_after_an_unknown_assign_a_subscriber_may_still_be_one() -> None:
    story, consumer = story_of_five_values()
    consumer.subscribes()
    consumer.assigns(outcome="unknown")
    consumer.polls((0, 1))
    consumer.polls((2, 3))
    assert story.kinds() == []


def test_a_subscriber_that_reports_rebalances_may_move_only_then() -> None:
    story, consumer = story_of_five_values()
    consumer.subscribes()
    consumer.polls_after_rebalance((0, 1), (1, 2))
    consumer.polls_after_rebalance((0, 1))
    consumer.transaction(polled((1, 2)), rebalanced(KEY), polled((7, 5)))
    assert story.kinds() == []
    consumer.polls((3, 4))
    assert story.kinds() == [Kind.NONMONOTONIC_POLL]


def test_a_rebalance_of_other_logs_moves_nothing_here() -> None:
    story, consumer = story_of_five_values()
    consumer.subscribes()
    consumer.polls_after_rebalance((0, 1))
    consumer.polls_after_rebalance((2, 3), keys=(OTHER_KEY,))
    assert story.kinds() == [Kind.POLL_SKIP]


@pytest.mark.parametrize("outcome", ["ok", "fail", "unknown"])
def test_after_an_aborted_transaction_a_consumer_may_read_again(outcome: str) -> None:
    for records in [(0, 1), (1, 2)], [(2, 3)]:
        story, consumer = story_of_five_values()
        consumer.assigns()
        consumer.aborts(polled((0, 1), (1, 2)), outcome=outcome)
        consumer.polls(*records)
        assert story.kinds() == []


def test_after_an_unknown_poll_the_position_is_unknown() -> None:
    story, consumer = story_of_five_values()
    consumer.polls((0, 1))
    consumer.polls(outcome="unknown")
    consumer.polls((3, 4))
    assert story.kinds() == []


def test_a_lost_value_is_found_once_and_not_again_for_every_reader() -> None:
    story = Story()
    writer, reader, other_reader = story.clients(3)
    for value in range(3):
        writer.sends(value, at=value)
    reader.polls((0, 0), (2, 2))
    other_reader.polls((0, 0), (2, 2))
    assert story.kinds() == [Kind.LOST_WRITE]


def test_of_a_long_skip_only_the_start_is_listed() -> None:
    story = Story()
    writer, reader, consumer = story.clients(3)
    for value in range(100):
        writer.sends(value, at=value)
    reader.polls(*((value, value) for value in range(100)))
    consumer.polls((0, 0), (99, 99))
    (finding,) = story.verdict().findings
    assert "without 1 (value 1), 2 (value 2)" in finding.text and "and 93 more, which" in finding.text
