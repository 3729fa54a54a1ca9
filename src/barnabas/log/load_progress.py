"""How far the loading of all logs is: written by the thread that loads them, read by the event loop."""

from barnabas.ids import TopicPartition


class LoadingGivenUp(Exception):
    """The broker is to stop before its logs are loaded."""


class Loading:
    def __init__(self) -> None:
        # The logs of the directories that were listed so far.
        self.found = 0
        self.done = 0
        self._is_recovery = False
        self._current: TopicPartition | None = None
        self._is_given_up = False

    def begin(self, count: int, was_clean: bool) -> None:
        """A directory with so many logs is next."""
        self.found += count
        self._is_recovery |= count > 0 and not was_clean

    def go_on(self, partition: TopicPartition) -> None:
        """The log of this partition is next, unless the loading was given up."""
        if self._is_given_up:
            raise LoadingGivenUp
        self._current = partition

    def give_up(self) -> None:
        """Called by another thread: end after the log that is being loaded."""
        self._is_given_up = True

    def __str__(self) -> str:
        verb = "recovered after an unclean stop" if self._is_recovery else "open"
        current = "" if self._current is None else f", {self._current} is next"
        return f"{self.done} of {self.found} logs are {verb}{current}"
