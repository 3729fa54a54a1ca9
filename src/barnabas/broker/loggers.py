"""The loggers of this process as Kafka's tools see them: a name and one of log4j's levels each.

A change takes effect at once and lasts until the process ends, as in Kafka."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from barnabas.config.alter import Operation
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.configs import ConfigChange

ROOT = "root"
# From high to low. Python has no TRACE; here it is everything below DEBUG.
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 1,
}


def one_line(text: str) -> str:
    """The text with all characters escaped that could begin a line or hide a part of one. What is logged may
    have names in it that clients choose, and must not look like several events."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


def logger_levels() -> dict[str, str]:
    """Every logger with the level in force for it, its own or inherited."""
    known = logging.root.manager.loggerDict
    loggers = {name: logger for name, logger in known.items() if isinstance(logger, logging.Logger)}
    return {
        name: _level_name(logger.getEffectiveLevel())
        for name, logger in sorted({**loggers, ROOT: logging.root}.items())
    }


def check_levels(changes: Iterable[ConfigChange]) -> None:
    """Raise for the first change that cannot be made."""
    known = logger_levels()
    for change in changes:
        is_set = change.operation == Operation.SET
        if not is_set and change.operation != Operation.DELETE:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"the level of logger {change.key} can only be set or deleted"
            )
        if change.key not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"there is no logger {change.key!r}")
        if not is_set and change.key == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the root logger must have a level")
        if is_set and change.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the level of logger {change.key} is missing")
        if is_set and change.value not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"logger {change.key} cannot have level {change.value!r}: use one of {', '.join(LEVELS)}",
            )


def change_levels(changes: Iterable[ConfigChange]) -> None:
    """Make changes that were checked before."""
    for change in changes:
        logger = logging.root if change.key == ROOT else logging.getLogger(change.key)
        # Without a level of its own, a logger has that of the next higher logger.
        is_set = change.operation == Operation.SET and change.value is not None
        logger.setLevel(LEVELS[change.value or ""] if is_set else logging.NOTSET)


def _level_name(level: int) -> str:
    return next((name for name, lowest in LEVELS.items() if level >= lowest), "TRACE")
