"""The lines that `barnabas start` writes to its log."""

import logging
import sys

from barnabas.cli.start import TextFormatter


def formatted(message: str, *arguments: object, failure: bool = False) -> str:
    details = sys.exc_info() if failure else None
    record = logging.LogRecord("some.logger", logging.WARNING, "file.py", 1, message, arguments, details)
    return TextFormatter().format(record)


def test_an_event_is_one_line_whatever_a_client_sends() -> None:
    line = formatted("group %s: größer", "a\n[2026-01-01 00:00:00,000] INFO forged\r\x1b[1m")
    assert line.isprintable()
    assert line.endswith(
        r"WARNING group a\n[2026-01-01 00:00:00,000] INFO forged\r\x1b[1m: größer (some.logger)"
    )


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        lines = formatted("it failed", failure=True).splitlines()
    assert lines[0].endswith("it failed (some.logger)")
    assert lines[1] == "Traceback (most recent call last):" and lines[-1] == "ValueError: broken"
