"""Stories of values that are lost, torn, twice, or in the wrong place, and of some that only look so."""

from tests.jepsen.checker import Kind, Rules
from tests.jepsen.story import KEY, OTHER_KEY, Story, polled, sent

# ---- lost and unseen


def test_an_acknowledged_value_that_readers_passed_is_lost() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    writer.sends(2, at=1)
    writer.sends(3, at=2)
    reader.polls((0, 1), (2, 3))
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.LOST_WRITE]
    assert verdict.findings[0].key == KEY
    assert "value 2 was acknowledged at offset 1" in verdict.findings[0].text
    assert [operation.function for operation in verdict.findings[0].operations] == ["send", "poll"]


def test_a_value_of_a_committed_transaction_is_lost_like_any_other() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=0), sent(2, at=1))
    reader.polls((1, 2))
    assert story.kinds() == [Kind.LOST_WRITE]


def test_a_value_is_lost_also_if_nothing_was_read_to_the_end() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    writer.sends(2, at=1)
    reader.polls((1, 2))
    assert story.kinds(Rules(read_to_end=False)) == [Kind.LOST_WRITE]


def test_an_acknowledged_value_at_the_end_that_nobody_read_is_unseen() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    writer.sends(2, at=1)
    reader.polls((0, 1))
    assert story.kinds() == [Kind.UNSEEN]
    assert story.kinds(Rules(read_to_end=False)) == []


def test_an_acknowledged_value_whose_offset_is_unknown_is_unseen() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1)
    writer.sends(2, at=7)
    reader.polls((7, 2))
    assert story.kinds() == [Kind.UNSEEN]


def test_values_in_a_log_that_nobody_read_are_unseen() -> None:
    story = Story()
    story.client().sends(1, at=0)
    assert story.kinds() == [Kind.UNSEEN]


def test_values_that_were_not_acknowledged_may_be_missing() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, outcome="unknown")
    writer.sends(2, outcome="fail")
    writer.aborts(sent(3, at=0))
    writer.transaction(sent(4, at=2), outcome="unknown")
    writer.sends(5, at=4)
    reader.polls((4, 5))
    assert story.kinds() == []


def test_sends_in_flight_have_outcomes_of_their_own() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends_together((*sent(1), "unknown"), (*sent(2), "fail"), (*sent(3, at=0), "ok"))
    writer.sends(4, at=1)
    reader.polls((1, 4))
    assert story.kinds() == [Kind.LOST_WRITE]
    reader.polls((0, 3))
    assert story.kinds() == [Kind.NONMONOTONIC_POLL]


def test_one_of_the_sends_in_flight_failed_and_was_read() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends_together((*sent(1), "fail"), (*sent(2, at=1), "ok"))
    reader.polls((0, 1), (1, 2))
    assert story.kinds() == [Kind.ABORTED_READ]


def test_a_client_that_was_killed_may_have_written_or_not() -> None:
    for records in [(0, 1)], [(0, 1), (1, 2)]:
        story = Story()
        writer, killed, reader = story.clients(3)
        writer.sends(1, at=0)
        killed.begins("send", sent(2))
        reader.polls(*records)
        assert story.kinds() == []


# ---- torn transactions


def test_an_unknown_transaction_of_which_one_part_was_read_is_torn() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1), sent(2), sent(3, key=OTHER_KEY), outcome="unknown")
    reader.polls((0, 1), (1, 2))
    verdict = story.verdict()
    assert verdict.kinds == {Kind.TORN_TRANSACTION}
    assert verdict.findings[0].key == OTHER_KEY
    assert "value 3 of events-1" in verdict.findings[0].text


def test_the_transaction_of_a_killed_client_is_torn_as_well() -> None:
    story = Story()
    killed, reader = story.clients(2)
    killed.begins("txn", sent(1), sent(2))
    reader.polls((1, 2))
    assert story.kinds() == [Kind.TORN_TRANSACTION]


def test_an_unknown_transaction_that_was_read_as_a_whole_is_committed() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1), sent(2), sent(3, key=OTHER_KEY), outcome="unknown")
    reader.polls((0, 1), (1, 2))
    reader.polls((0, 3), key=OTHER_KEY)
    assert story.kinds() == []


def test_before_everything_was_read_a_part_may_be_read_later() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1, at=0), sent(2, at=1), outcome="unknown")
    reader.polls((0, 1))
    assert story.kinds(Rules(read_to_end=False)) == []
    writer.sends(3, at=3)
    reader.polls((3, 3))
    assert story.kinds(Rules(read_to_end=False)) == [Kind.TORN_TRANSACTION]


def test_with_read_uncommitted_a_part_of_a_transaction_proves_nothing() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.transaction(sent(1), sent(2), outcome="unknown")
    reader.polls((0, 1))
    assert story.kinds(Rules(read_committed=False)) == []


# ---- two values at one offset, one value at two offsets


def test_two_readers_that_disagree_about_an_offset() -> None:
    story = Story()
    writer, other_writer, reader, other_reader = story.clients(4)
    writer.sends(1, outcome="unknown")
    other_writer.sends(2, outcome="unknown")
    reader.polls((0, 1))
    other_reader.polls((0, 2))
    verdict = story.verdict()
    assert verdict.kinds == {Kind.INCONSISTENT_OFFSETS}
    assert "offset 0 has the values 1, 2" in verdict.findings[0].text
    assert [operation.process for operation in verdict.findings[0].operations] == [2, 3]


def test_an_acknowledgement_that_disagrees_with_a_reader() -> None:
    story = Story()
    writer, other_writer, reader = story.clients(3)
    writer.sends(1, at=0)
    other_writer.sends(2, outcome="unknown")
    reader.polls((0, 2))
    assert Kind.INCONSISTENT_OFFSETS in story.kinds()


def test_two_acknowledgements_of_one_offset() -> None:
    story = Story()
    writer, other_writer, reader = story.clients(3)
    writer.sends(1, at=0)
    other_writer.sends(2, at=0)
    reader.polls((0, 1))
    assert Kind.INCONSISTENT_OFFSETS in story.kinds()


def test_an_aborted_record_keeps_its_offset() -> None:
    story = Story()
    writer, other_writer, reader = story.clients(3)
    writer.aborts(sent(1, at=0))
    other_writer.sends(2, at=0)
    reader.polls((0, 2))
    assert story.kinds() == [Kind.INCONSISTENT_OFFSETS]


def test_the_same_offset_of_two_logs_has_two_values() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    writer.sends(2, at=0, key=OTHER_KEY)
    reader.polls((0, 1))
    reader.polls((0, 2), key=OTHER_KEY)
    assert story.kinds() == []


def test_a_value_that_a_retry_wrote_again_is_a_duplicate() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    reader.polls((0, 1), (1, 1))
    verdict = story.verdict()
    assert verdict.kinds == {Kind.DUPLICATE}
    assert "value 1 is at the offsets 0, 1" in verdict.findings[0].text
    assert story.kinds(Rules(idempotent=False)) == []


def test_a_value_of_an_unknown_send_can_be_a_duplicate() -> None:
    story = Story()
    writer, reader, other_reader = story.clients(3)
    writer.sends(1, outcome="unknown")
    reader.polls((3, 1))
    other_reader.polls((5, 1))
    assert Kind.DUPLICATE in story.kinds()


def test_a_value_that_is_not_where_it_was_acknowledged_is_a_duplicate() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=4)
    reader.polls((5, 1))
    assert story.kinds() == [Kind.DUPLICATE]


def test_a_retry_that_is_acknowledged_with_the_first_offset_is_clean() -> None:
    story = Story()
    writer, reader, other_reader = story.clients(3)
    writer.sends(1, at=0)
    writer.sends(2, at=1)
    reader.polls((0, 1), (1, 2))
    other_reader.polls((0, 1))
    other_reader.polls((1, 2))
    assert story.kinds() == []


# ---- values from nowhere


def test_a_value_that_nobody_sent() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    reader.polls((0, 1), (1, 77))
    assert story.kinds() == [Kind.UNSENT_READ]


def test_a_value_that_was_sent_to_another_log() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, at=0)
    reader.polls((0, 1))
    reader.polls((0, 1), key=OTHER_KEY)
    verdict = story.verdict()
    assert [finding.kind for finding in verdict.findings] == [Kind.UNSENT_READ]
    assert verdict.findings[0].key == OTHER_KEY
    assert "it was sent to events-0" in verdict.findings[0].text


# ---- what looks suspicious, and is not


def test_an_unknown_send_appears_late_behind_later_sends() -> None:
    story = Story()
    writer, reader = story.clients(2)
    writer.sends(1, outcome="unknown")
    writer.sends(2, at=0)
    reader.polls((0, 2))
    writer.sends(3, at=1)
    reader.polls((1, 3), (2, 1))
    assert story.kinds() == []


def test_gaps_of_markers_and_aborted_records() -> None:
    story = Story()
    writer, other_writer, reader = story.clients(3)
    writer.transaction(sent(1, at=0), sent(2, at=2))
    other_writer.aborts(sent(3, at=1), sent(4, at=3))
    writer.sends(5, at=6)
    other_writer.transaction(sent(6, at=7), outcome="fail")
    writer.sends(7, at=9)
    reader.polls((0, 1), (2, 2), (6, 5), (9, 7))
    assert story.kinds() == []


def test_reads_of_a_transaction_that_was_aborted_are_reads() -> None:
    story = Story()
    writer, copier = story.clients(2)
    writer.sends(1, at=0)
    copier.aborts(polled((0, 1)), sent(2, at=1))
    assert story.kinds() == []
