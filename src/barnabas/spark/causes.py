"""Why a query failed, as one sentence that says what to do: from the text of a Spark error.

The text may hold stack traces of Python and of Java, from the driver and from tasks, one inside the other.
The cause is, in this order: an error of our own, whose text is a sentence for the user; a problem of the
machine that a known text shows; the error of other Python code, with its line; the first cause in Java."""

import re
import traceback
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

LENGTH_MAX = 600
SQL_LENGTH_MAX = 120
OWN = "barnabas."
SPARK = ("pyspark.", "py4j.")

JAVA_ENDED = (
    "Spark's Java process has ended. Often it has no memory left: give it more, for example --conf"
    " spark.driver.memory=4g, or let batches read less (options: {maxBytesPerTrigger: 64m} of the source)."
)
# Texts that show a problem of the machine, and what to do. They replace the text of the error ...
REMEDIES = (
    (
        "failed to connect back",
        "Spark's Python process did not start in time, because the machine is busy: stop other programs, or"
        " give Spark fewer cores, for example --master local[1].",
    ),
    (
        "java.lang.OutOfMemoryError",
        "Spark ran out of memory: give it more, for example --conf spark.driver.memory=4g, or let batches"
        " read less (options: {maxBytesPerTrigger: 64m} of the source).",
    ),
    (
        r"java\.lang\.(NoSuchMethodError|NoSuchFieldError|AbstractMethodError|IncompatibleClassChangeError)\b",
        "A jar was made for another version of Spark: use the release of it that is for this version, or"
        " leave it out.",
    ),
    (
        r"^MemoryError\b",
        "A Python process of Spark ran out of memory: give Spark fewer cores, or let batches read less"
        " (options: {maxBytesPerTrigger: 64m} of the source).",
    ),
    (
        "Python worker exited unexpectedly",
        "A Python process of Spark ended unexpectedly. Often the machine has no memory left: give Spark fewer"
        " cores, or let batches read less (options: {maxBytesPerTrigger: 64m} of the source).",
    ),
    (
        "No space left on device",
        "The disk is full (No space left on device): free some space, or set spark.local.dir to a directory"
        " on a larger disk with --conf.",
    ),
    (
        "CONCURRENT_STREAM_LOG_UPDATE|concurrent update to the log",
        "Another run of the pipeline uses the same checkpoint: stop one of them.",
    ),
)
# ... or are added to it.
HINTS = (
    (
        "Permission denied|Not a directory|NotADirectory|Read-only file system|PermissionDenied",
        "Check the path, and that this user may write there.",
    ),
    ("KafkaTimeoutError|did not answer within", "Check that the broker runs, and bootstrap in the file."),
    (
        "output mode: append.*aggregations without watermark",
        "Group by a window of the column with the watermark, or set mode: upsert and a key of the table.",
    ),
    ("USER_RAISED_EXCEPTION", "Correct the data, or set the rule's action to quarantine or drop."),
)

_TRACEBACK = "Traceback (most recent call last):"
_HANDLING = "During handling of the above exception, another exception occurred:"
_FROM = "The above exception was the direct cause of the following exception:"
_PYTHON_ERROR = re.compile(r"([A-Za-z_][\w.]*)(?:: (.*))?")
_FRAME = re.compile(r'\s+File "([^"]+)", line (\d+), in (\S+)')
_JAVA_ERROR = re.compile(r"((?:[a-z]\w*\.){2,}[A-Z][\w$]*(?:Exception|Error|Throwable))(?:: (.*))?")
# Spark's codes for programs: [UNRESOLVED_COLUMN.WITH_SUGGESTION] ... SQLSTATE: 42703
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}")
_MARK = re.compile(r"[-\s]*\^\^\^+\s*$")
_PLACE_IN_SQL = re.compile(r"[;,]?\s*\(?line (\d+),? pos (\d+)\)?;?")
# Errors that only pass on another one.
_WRAPPERS = re.compile(
    r"Py4JJavaError|PythonException|StreamingQueryException|UnboundLocalError|SparkException$"
)
# Code of libraries is not where a user looks for a mistake.
_LIBRARIES = re.compile(r"/(site|dist)-packages/|/pyspark\.zip/|/lib/python3|/barnabas/|^<")


class PlaceInSql(NamedTuple):
    """Where in a text of SQL: the line, from 1 on, and how many characters are before it in the line."""

    line: int
    position: int


class Raised(NamedTuple):
    """An error that a text names: its class, its own text, and the place in Python code of the user."""

    name: str
    text: str
    place: str = ""

    @property
    def is_ours(self) -> bool:
        return self.name.startswith(OWN)


def cause_of(error: BaseException) -> str:
    """The cause of an error, as one sentence."""
    if type(error).__module__.startswith(OWN):
        return _with_hint(str(error), type(error).__name__ + str(error))
    cause = getattr(error, "cause", None) or error.__cause__
    text = f"{error}\n{cause or ''}"
    if not type(error).__module__.startswith(SPARK):
        # An error of Python code on the driver, such as the function of a step.
        text = "".join(traceback.format_exception(error))
    return _with_hint(_sentence(text), text) or repr(error)


def place_in_sql(error: BaseException) -> PlaceInSql | None:
    """Where in a text of SQL Spark found a mistake, if it says so."""
    match = _PLACE_IN_SQL.search(str(error))
    return None if match is None else PlaceInSql(int(match[1]), int(match[2]))


def _sentence(text: str) -> str:
    python = list(_python_errors(text))
    ours = next((each for each in python if each.is_ours), None)
    if ours is not None:
        return _cut(ours.text or ours.name)
    for pattern, remedy in REMEDIES:
        if re.search(pattern, text, re.MULTILINE):
            return remedy
    theirs = next((each for each in python if not _WRAPPERS.search(each.name)), None)
    if theirs is not None:
        return _cut(_named(theirs))
    return _cut(_condition(text) or _java_cause(text) or _first_line(text))


def _with_hint(sentence: str, text: str) -> str:
    for pattern, hint in HINTS:
        if re.search(pattern, text):
            end = "" if sentence.endswith((".", "!", "?")) else "."
            return f"{sentence}{end} {hint}"
    return sentence


def _named(error: Raised) -> str:
    name = error.name.rpartition(".")[2]
    place = f" ({error.place})" if error.place else ""
    return f"{name}: {_clean(error.text)}{place}" if error.text else f"{name}{place}"


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= LENGTH_MAX else sentence[: LENGTH_MAX - 3] + "..."


def _condition(text: str) -> str:
    """The first sentence of Spark about what is wrong, and the line of SQL that it marks."""
    lines = text.splitlines()
    sentence = next((_clean(line) for line in lines if _CONDITION.match(line)), "")
    marked = next((lines[number - 1].strip() for number, line in enumerate(lines) if _MARK.match(line)), "")
    return f"{sentence} (in: {marked[:SQL_LENGTH_MAX]})" if sentence and marked else sentence


def _first_line(text: str) -> str:
    return next((_clean(line) for line in text.splitlines() if line.strip()), "")


def _clean(text: str) -> str:
    """Without Spark's codes for programs."""
    return _PLACE_IN_SQL.sub("", _STATE.sub("", _CONDITION.sub("", text))).strip(" ;")


def _java_cause(text: str) -> str:
    """The text of the first cause in Java: the last one that is named."""
    found = ""
    for line in text.splitlines():
        match = None if line.lstrip().startswith("at ") else _JAVA_ERROR.search(line)
        if match is not None and match[2] and not _WRAPPERS.search(match[1]):
            found = _clean(match[2])
    return found


def _python_errors(text: str) -> Iterator[Raised]:
    """For each chain of Python errors in the text, the one that names the cause."""
    chain: Raised | None = None
    link = ""
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip() in (_HANDLING, _FROM):
            link = line.strip()
        elif _TRACEBACK in line:
            error = _read_traceback(lines)
            if chain is not None and not link:
                yield chain
                chain = None
            chain = error if chain is None else _chosen(chain, link, error)
            link = ""
    if chain is not None:
        yield chain


def _chosen(first: Raised, link: str, second: Raised) -> Raised:
    """Which of two errors in a chain is the cause: ours; otherwise the second if its author raised it because
    of the first. An error in clean-up code, which runs while the first is handled, says nothing about the
    cause."""
    if first.is_ours != second.is_ours:
        return first if first.is_ours else second
    return second if link == _FROM or second.is_ours else first


def _read_traceback(lines: Iterator[str]) -> Raised:
    """The error at the end of a traceback whose first line was read."""
    place = ""
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None and not _LIBRARIES.search(frame[1]):
            place = f"{PurePath(frame[1]).name}, line {frame[2]}, in {frame[3]}"
        match = _PYTHON_ERROR.fullmatch(line)
        if match is not None:
            return Raised(match[1], match[2] or "", place)
    return Raised("", "")
