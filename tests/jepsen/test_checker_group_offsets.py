"""Stories of groups whose committed offset goes back, and of some in which it may."""

import pytest
from tests.jepsen.checker import Kind
from tests.jepsen.story import GROUP, KEY, OTHER_KEY, Story, offset_sent


def found(offset: int | None) -> tuple[str, str, dict[str, int | None]]:
    return "committed", GROUP, {KEY: offset}


def test_an_acknowledged_commit_is_forgotten() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(5)
    member.commits(9)
    observer.finds_committed(5)
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.NONMONOTONIC_COMMIT]
    assert "found offset 5 for group 'readers', but offset 9" in verdict.findings[0].text
    assert [operation.process for operation in verdict.findings[0].operations] == [0, 1]


def test_a_group_has_forgotten_everything() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(5)
    observer.finds_committed(None)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_what_was_found_once_is_never_lower_later() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.begins("commit", ("commit", GROUP, {KEY: 5}))
    observer.finds_committed(5)
    observer.finds_committed(None)
    member.ends("ok", ("commit", GROUP, {KEY: 5}))
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_a_late_commit_of_an_old_member_is_accepted() -> None:
    story = Story()
    member, old_member = story.clients(2)
    member.commits(9)
    old_member.commits(5)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_a_commit_of_a_transaction_is_forgotten() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(5)
    member.transaction(offset_sent(9))
    observer.finds_committed(5)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_the_offset_of_an_aborted_transaction_is_found() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(5)
    member.aborts(offset_sent(9))
    observer.finds_committed(9)
    assert story.kinds() == [Kind.ABORTED_READ]


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
def test_an_aborted_transaction_is_repeated(outcome: str) -> None:
    story = Story()
    member, observer = story.clients(2)
    member.aborts(offset_sent(9))
    member.transaction(offset_sent(9), outcome=outcome)
    observer.finds_committed(9)
    assert story.kinds() == []


def test_one_going_back_is_found_once() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(9)
    for _ in range(3):
        observer.finds_committed(5)
    member.commits(6)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


# ---- what may go back


def test_commits_that_failed_promise_nothing() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(5)
    member.commits(9, outcome="fail")
    observer.finds_committed(5)
    assert story.kinds() == []


def test_a_reset_goes_back() -> None:
    story = Story()
    member, operator, observer = story.clients(3)
    member.commits(9)
    operator.resets(2)
    observer.finds_committed(2)
    member.commits(4)
    observer.finds_committed(4)
    assert story.kinds() == []
    observer.finds_committed(2)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


@pytest.mark.parametrize("offset", [2, 9, 12])
def test_a_commit_and_a_reset_at_the_same_time_may_be_in_either_order(offset: int) -> None:
    story = Story()
    member, operator, observer = story.clients(3)
    member.commits(9)
    operator.begins("reset", ("reset", GROUP, {KEY: 2}))
    member.commits(12)
    observer.finds_committed(offset)
    operator.ends("ok", ("reset", GROUP, {KEY: 2}))
    observer.finds_committed(2)
    assert story.kinds() == []


@pytest.mark.parametrize("offset", [None, 5])
def test_a_commit_and_a_read_at_the_same_time_may_be_in_either_order(offset: int | None) -> None:
    story = Story()
    member, observer = story.clients(2)
    observer.begins("committed", ("committed", GROUP))
    member.commits(5)
    observer.ends("ok", found(offset))
    assert story.kinds() == []


def test_a_read_that_came_before_a_commit_at_the_same_time_takes_nothing_back() -> None:
    story = Story()
    member, observer = story.clients(2)
    observer.begins("committed", ("committed", GROUP))
    member.commits(9)
    observer.ends("ok", found(None))
    observer.finds_committed(5)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


@pytest.mark.parametrize("offset", [5, 9])
def test_two_commits_at_the_same_time_may_be_in_either_order(offset: int) -> None:
    story = Story()
    member, other, observer = story.clients(3)
    member.begins("commit", ("commit", GROUP, {KEY: 5}))
    other.commits(9)
    member.ends("ok", ("commit", GROUP, {KEY: 5}))
    observer.finds_committed(offset)
    assert story.kinds() == []


def test_three_commits_at_overlapping_times() -> None:
    """The second one is at the same time as both others, so it may be the last one."""
    story = Story()
    first, second, third, observer = story.clients(4)
    first.begins("commit", ("commit", GROUP, {KEY: 5}))
    second.begins("commit", ("commit", GROUP, {KEY: 9}))
    first.ends("ok", ("commit", GROUP, {KEY: 5}))
    third.begins("commit", ("commit", GROUP, {KEY: 12}))
    second.ends("ok", ("commit", GROUP, {KEY: 9}))
    third.ends("ok", ("commit", GROUP, {KEY: 12}))
    observer.finds_committed(9)
    assert story.kinds() == []
    observer.finds_committed(5)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_a_commit_that_is_under_way_may_be_found() -> None:
    story = Story()
    slow, member, observer = story.clients(3)
    slow.begins("commit", ("commit", GROUP, {KEY: 5}))
    member.commits(9)
    observer.finds_committed(9)
    observer.finds_committed(5)
    slow.ends("ok", ("commit", GROUP, {KEY: 5}))
    observer.finds_committed(5)
    assert story.kinds() == []


def test_a_commit_may_be_the_last_one_although_another_ends_later() -> None:
    story = Story()
    member, other, observer = story.clients(3)
    member.begins("commit", ("commit", GROUP, {KEY: 5}))
    other.begins("commit", ("commit", GROUP, {KEY: 9}))
    member.ends("ok", ("commit", GROUP, {KEY: 5}))
    observer.begins("committed", ("committed", GROUP))
    other.ends("ok", ("commit", GROUP, {KEY: 9}))
    observer.ends("ok", found(5))
    observer.finds_committed(5)
    assert story.kinds() == []


def test_a_commit_may_end_while_a_read_finds_it() -> None:
    story = Story()
    slow, member, observer = story.clients(3)
    slow.begins("commit", ("commit", GROUP, {KEY: 5}))
    member.commits(9)
    observer.begins("committed", ("committed", GROUP))
    slow.ends("ok", ("commit", GROUP, {KEY: 5}))
    member.commits(10)
    observer.ends("ok", found(5))
    assert story.kinds() == []


def test_a_commit_that_begins_during_a_reset_may_be_the_last_one() -> None:
    story = Story()
    operator, slow, member, observer = story.clients(4)
    operator.begins("reset", ("reset", GROUP, {KEY: 2}))
    slow.begins("commit", ("commit", GROUP, {KEY: 3}))
    operator.ends("ok", ("reset", GROUP, {KEY: 2}))
    member.begins("commit", ("commit", GROUP, {KEY: 5}))
    slow.ends("ok", ("commit", GROUP, {KEY: 3}))
    member.ends("ok", ("commit", GROUP, {KEY: 5}))
    observer.finds_committed(3)
    assert story.kinds() == []


@pytest.mark.parametrize("offset", [2, 12])
def test_a_commit_that_ends_after_a_reset_may_have_come_before_it(offset: int) -> None:
    story = Story()
    operator, member, observer = story.clients(3)
    operator.begins("reset", ("reset", GROUP, {KEY: 2}))
    member.begins("commit", ("commit", GROUP, {KEY: 12}))
    operator.ends("ok", ("reset", GROUP, {KEY: 2}))
    member.ends("ok", ("commit", GROUP, {KEY: 12}))
    observer.finds_committed(offset)
    assert story.kinds() == []


def test_after_a_reset_and_a_commit_at_the_same_time_it_is_one_of_both() -> None:
    story = Story()
    operator, member, observer = story.clients(3)
    operator.begins("reset", ("reset", GROUP, {KEY: 2}))
    member.commits(12)
    operator.ends("ok", ("reset", GROUP, {KEY: 2}))
    observer.finds_committed(1)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_an_unknown_reset_may_land_late_and_the_group_goes_on_from_there() -> None:
    story = Story()
    member, operator = story.clients(2)
    operator.resets(2, outcome="unknown")
    member.commits(9)
    member.commits(3)
    assert story.kinds() == []
    member.commits(1)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_an_unknown_commit_may_land_late_and_be_passed_again() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(7, outcome="unknown")
    member.commits(5)
    observer.finds_committed(7)
    member.commits(6)
    member.commits(9)
    observer.finds_committed(7)
    member.commits(8)
    assert story.kinds() == []


def test_an_unknown_commit_explains_no_other_offset() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(7, outcome="unknown")
    member.commits(9)
    observer.finds_committed(6)
    assert story.kinds() == [Kind.NONMONOTONIC_COMMIT]


def test_other_groups_and_other_logs_have_offsets_of_their_own() -> None:
    story = Story()
    member, observer = story.clients(2)
    member.commits(9)
    member.transaction(offset_sent(3, key=OTHER_KEY), offset_sent(4, group="others"))
    observer.begins("committed", ("committed", "others"))
    observer.ends("ok", ("committed", "others", {KEY: 4, OTHER_KEY: None}))
    assert story.kinds() == []
