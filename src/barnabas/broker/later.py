"""An answer that comes later, without a task: the callback runs inside `resolve`, in the same turn.

A waiting fetch is answered by the append that feeds it; a future would answer one turn of the loop later."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any


class Later:
    __slots__ = ("_callback", "answer", "is_resolved")

    def __init__(self) -> None:
        self._callback: Callable[[Any], None] | None = None
        # Valid when it is resolved, and nobody has called `then` before.
        self.answer: Any = None
        self.is_resolved = False

    def then(self, callback: Callable[[Any], None]) -> None:
        if self.is_resolved:
            callback(self.answer)
        else:
            self._callback = callback

    def __await__(self) -> Generator[Any, None, Any]:
        """For handlers that need the answer themselves. If it is there already, this does not wait."""
        if self.is_resolved:
            return self.answer
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.then(lambda answer: None if future.done() else future.set_result(answer))
        return (yield from future)

    def resolve(self, answer: Any) -> None:
        """Give the answer; only the first one counts."""
        if self.is_resolved:
            return
        self.is_resolved = True
        if self._callback is not None:
            self._callback(answer)
        else:
            self.answer = answer
