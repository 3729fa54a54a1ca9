"""A trouble is logged once with its cause, then rarely with how long it lasts, and once when it is over."""

import logging

import pytest

from barnabas.client.errors import DisconnectedError, ErrorCode, KafkaError
from barnabas.client.troubles import Troubles, cause_of

BROKER, REFUSED = "the broker at h:1", "connection refused by h:1"


class Story:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.now = 100.0
        self.troubles = Troubles("till", lambda: self.now)
        self._caplog = caplog
        caplog.set_level(logging.INFO, "barnabas.client")

    def fails_for(self, seconds: int, subject: str = BROKER, cause: str = REFUSED) -> None:
        """Ten attempts in each second."""
        for _ in range(seconds * 10):
            self.troubles.failed(subject, cause)
            self.now += 0.1

    @property
    def lines(self) -> list[str]:
        return [f"{record.levelname} {record.getMessage()}" for record in self._caplog.records]


@pytest.fixture
def story(caplog: pytest.LogCaptureFixture) -> Story:
    return Story(caplog)


def test_many_attempts_are_one_warning(story: Story) -> None:
    story.fails_for(9)
    assert story.lines == [f"WARNING [till] {REFUSED}; trying again"]


def test_a_long_trouble_is_logged_again_with_its_duration(story: Story) -> None:
    story.fails_for(100)
    assert story.lines[1:] == [
        f"WARNING [till] {REFUSED}, for 10 s; trying again",
        f"WARNING [till] {REFUSED}, for 70 s; trying again",
    ]


def test_the_end_is_logged_once(story: Story) -> None:
    story.fails_for(3)
    story.troubles.ended(BROKER)
    story.troubles.ended(BROKER)
    assert story.lines[1:] == [f"INFO [till] {BROKER} is available after 3.0 s"]
    story.fails_for(1)
    assert story.lines[2:] == [f"WARNING [till] {REFUSED}; trying again"]


def test_what_passes_soon_is_not_logged(story: Story) -> None:
    story.troubles.failed("topic 't'", "topic 't' does not exist", 1.0)
    story.now += 0.5
    story.troubles.failed("topic 't'", "topic 't' does not exist", 1.0)
    assert story.troubles.explain() == ": topic 't' does not exist"
    story.troubles.ended("topic 't'")
    assert story.lines == []
    assert story.troubles.explain() == ""


def test_a_timeout_is_explained_by_the_last_cause(story: Story) -> None:
    story.fails_for(1)
    story.fails_for(1, "the broker at i:1", "connection refused by i:1")
    story.fails_for(1)
    assert story.troubles.explain() == f": {REFUSED}"
    story.troubles.ended(BROKER)
    assert story.troubles.explain() == ": connection refused by i:1"


def test_only_errors_of_connections_go_without_kafkas_name() -> None:
    assert cause_of(DisconnectedError("connection refused by h:1")) == "connection refused by h:1"
    assert cause_of(KafkaError(ErrorCode.NOT_CONTROLLER, "no")) == "NOT_CONTROLLER: no"
