"""Errors and pauses that clients noticed, found in histories that are written by hand."""

from tests.jepsen.availability import OWN_END, acknowledged_within, longest_pauses, send_errors
from tests.jepsen.story import KEY, OTHER_KEY, Story, sent


def at(story: Story, seconds: float) -> None:
    """The last event happened at this time."""
    story.history[-1].time = int(seconds * 1e9)


def test_a_send_that_fails_is_an_error_but_a_poll_is_none() -> None:
    story = Story()
    client = story.client()
    client.sends(1, 0)
    client.polls((0, 1), outcome="fail")
    client.transaction(sent(2))
    assert not list(send_errors(story.history))
    client.sends(3, outcome="unknown")
    client.transaction(sent(4), outcome="fail")
    assert len(list(send_errors(story.history))) == 2


def test_a_transaction_that_a_client_leaves_on_purpose_is_no_error() -> None:
    story = Story()
    story.client().transaction(sent(1), outcome="fail")
    story.history[-1].error = OWN_END
    assert not list(send_errors(story.history))


def test_the_longest_pause_of_each_partition() -> None:
    story = Story()
    client = story.client()
    for value, seconds in enumerate((1.0, 1.5, 4.0, 4.25)):
        client.sends(value, value)
        at(story, seconds)
    client.sends(9, outcome="unknown")
    at(story, 20.0)
    client.sends(10, 0, key=OTHER_KEY)
    at(story, 21.0)
    assert longest_pauses(story.history, "events") == {KEY: 2.5, OTHER_KEY: 0.0}
    assert longest_pauses(story.history, "other") == {}


def test_an_acknowledgement_in_a_time_without_enough_replicas() -> None:
    story = Story()
    client = story.client()
    client.begins("send", sent(1))
    at(story, 3.0)
    client.ends("ok", sent(1, 0))
    at(story, 4.0)
    assert len(list(acknowledged_within(story.history, 2.0, 5.0))) == 1
    assert not list(acknowledged_within(story.history, 3.5, 5.0)), "it was sent before"
    assert not list(acknowledged_within(story.history, 2.0, 3.5)), "it was acknowledged after that"


def test_an_unknown_send_of_several_records_has_acknowledged_some() -> None:
    story = Story()
    client = story.client()
    client.sends_together((*sent(1, 0), "ok"), sent(2), outcome="unknown")
    at(story, 1.0)
    client.sends(3, 2)
    at(story, 1.5)
    assert longest_pauses(story.history, "events") == {KEY: 0.5}
