"""An answer that comes later, without a task: the callback runs inside `resolve`, in the same turn.

A parked fetch is answered by the append that feeds it; a future would answer one turn of the loop later."""

from collections.abc import Callable
from typing import Any


class Later:
    __slots__ = ("_answer", "_callback", "_is_resolved")

    def __init__(self) -> None:
        self._callback: Callable[[Any], None] | None = None
        self._answer: Any = None
        self._is_resolved = False

    def then(self, callback: Callable[[Any], None]) -> None:
        if self._is_resolved:
            callback(self._answer)
        else:
            self._callback = callback

    def resolve(self, answer: Any) -> None:
        """Give the answer; only the first one counts."""
        if self._is_resolved:
            return
        self._is_resolved = True
        if self._callback is not None:
            self._callback(answer)
        else:
            self._answer = answer
