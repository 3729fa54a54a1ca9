"""Prints what several processes write to their output files, each line with the name of its process."""

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

POLL_SECONDS = 0.05


class FollowedOutput:
    """`files` by the name of the process. What a file had before is not printed."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)
        self._width = max(map(len, files), default=0)
        self._positions = {name: path.stat().st_size for name, path in files.items() if path.exists()}
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_ended.set()
        self._thread.join()

    def say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    def _run(self) -> None:
        while not self._is_ended.wait(POLL_SECONDS):
            self._print_new_lines()
        self._print_new_lines()

    def _print_new_lines(self) -> None:
        for name, path in self._files.items():
            if path.exists():
                with path.open("rb") as file:
                    self._print_from(file, name)

    def _print_from(self, file: BinaryIO, name: str) -> None:
        file.seek(self._positions.get(name, 0))
        for line in file:
            if not line.endswith(b"\n"):
                return
            self._positions[name] = self._positions.get(name, 0) + len(line)
            text = line.decode(errors="replace").rstrip()
            print(f"[{name:{self._width}}] {text}", file=sys.stderr, flush=True)
