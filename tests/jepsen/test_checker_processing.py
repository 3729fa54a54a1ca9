"""Stories of groups that process records in transactions: twice, never, and exactly once."""

from typing import Any

from tests.jepsen.checker import Kind, Rules
from tests.jepsen.story import GROUP, KEY, OTHER_KEY, Story, offset_sent, polled, sent

RULES = Rules(exactly_once_groups=frozenset({GROUP}))


def copied(*records: tuple[int, int], as_value: int, end: int) -> tuple[tuple[Any, ...], ...]:
    """The parts of a transaction that copies these records as one value."""
    return polled(*records), sent(as_value, key=OTHER_KEY), offset_sent(end)


def story_of_two_records() -> Story:
    story = Story()
    writer = story.client()
    writer.sends(1, at=0)
    writer.sends(2, at=1)
    return story


def test_every_record_is_processed_once() -> None:
    story = story_of_two_records()
    copier, reader = story.clients(2)
    copier.transaction(*copied((0, 1), as_value=11, end=1))
    copier.transaction(*copied((1, 2), as_value=12, end=2))
    reader.polls((0, 11), (2, 12), key=OTHER_KEY)
    assert story.kinds(RULES) == []


def test_a_record_is_processed_by_two_transactions() -> None:
    story = story_of_two_records()
    one, other, reader = story.clients(3)
    one.transaction(*copied((0, 1), (1, 2), as_value=11, end=2))
    other.transaction(*copied((1, 2), as_value=12, end=2))
    reader.polls((0, 11), (2, 12), key=OTHER_KEY)
    verdict = story.verdict(RULES)
    assert [finding.kind for finding in verdict.findings] == [Kind.PROCESSED_TWICE]
    assert [operation.process for operation in verdict.findings[0].operations] == [1, 2]
    assert story.kinds(Rules()) == []


def test_an_unknown_transaction_counts_if_its_records_were_read() -> None:
    story = story_of_two_records()
    one, other, reader = story.clients(3)
    one.transaction(*copied((0, 1), (1, 2), as_value=11, end=2), outcome="unknown")
    other.transaction(*copied((0, 1), (1, 2), as_value=12, end=2))
    reader.polls((0, 12), key=OTHER_KEY)
    assert story.kinds(RULES) == []
    reader.polls((2, 11), key=OTHER_KEY)
    assert story.kinds(RULES) == [Kind.PROCESSED_TWICE]


def test_a_record_is_processed_again_after_an_abort() -> None:
    story = story_of_two_records()
    copier, reader = story.clients(2)
    copier.aborts(*copied((0, 1), (1, 2), as_value=11, end=2))
    copier.transaction(*copied((0, 1), (1, 2), as_value=12, end=2), outcome="fail")
    copier.transaction(*copied((0, 1), (1, 2), as_value=13, end=2))
    reader.polls((4, 13), key=OTHER_KEY)
    assert story.kinds(RULES) == []


def test_a_record_is_left_out() -> None:
    story = story_of_two_records()
    copier, reader = story.clients(2)
    copier.transaction(*copied((1, 2), as_value=11, end=2))
    reader.polls((0, 1), (1, 2))
    reader.polls((0, 11), key=OTHER_KEY)
    verdict = story.verdict(RULES)
    assert [finding.kind for finding in verdict.findings] == [Kind.PROCESSED_NEVER]
    assert verdict.findings[0].key == KEY
    assert story.kinds(Rules()) == []


def test_a_record_behind_the_committed_offset_may_still_be_processed() -> None:
    story = story_of_two_records()
    copier, reader = story.clients(2)
    copier.transaction(*copied((0, 1), as_value=11, end=1))
    reader.polls((0, 1), (1, 2))
    reader.polls((0, 11), key=OTHER_KEY)
    assert story.kinds(RULES) == []


def test_an_unknown_transaction_without_records_may_have_processed() -> None:
    story = story_of_two_records()
    one, other, reader = story.clients(3)
    one.transaction(polled((0, 1)), offset_sent(1), outcome="unknown")
    other.transaction(*copied((1, 2), as_value=11, end=2))
    reader.polls((0, 1), (1, 2))
    reader.polls((0, 11), key=OTHER_KEY)
    assert story.kinds(RULES) == []


def test_what_was_polled_beyond_the_committed_offset_is_not_processed() -> None:
    story = story_of_two_records()
    one, other, reader = story.clients(3)
    one.transaction(*copied((0, 1), (1, 2), as_value=11, end=1))
    other.transaction(*copied((1, 2), as_value=12, end=2))
    reader.polls((0, 11), (2, 12), key=OTHER_KEY)
    assert story.kinds(RULES) == []
