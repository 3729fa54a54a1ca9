"""Why the last run of a pipeline failed: a file in the directory of its checkpoints, for `pipeline status`
and the web console, which do not see the process that ran it.

The file is removed when the next run starts. On a file system that only Spark reads (hdfs://..., s3a://...)
there is none: Spark itself may be what has failed."""

import json
import logging
import time
from pathlib import Path
from typing import NamedTuple

from barnabas.spark.pipeline.definition import Pipeline, path_in

FILE = "failure.json"
PLANNING = "Planning"
"""The name instead of a query's for what fails before there are queries."""

_log = logging.getLogger(__name__)


class Failure(NamedTuple):
    """`cause` is one sentence; the time is in seconds since 1970."""

    query: str
    cause: str
    time: float

    def concerns(self, query: str) -> bool:
        return self.query in (query, PLANNING)

    @property
    def text(self) -> str:
        return f"{PLANNING} failed: {self.cause}" if self.query == PLANNING else self.cause


class LastFailure:
    def __init__(self, pipeline: Pipeline, directory: Path) -> None:
        root = path_in(directory, pipeline.checkpoint)
        self._file = None if "://" in root else Path(root) / FILE

    def read(self) -> Failure | None:
        if self._file is None:
            return None
        try:
            return Failure(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            _log.warning("%s cannot be read: %s", self._file, error)
            return None

    def forget(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def keep(self, query: str, cause: str) -> None:
        """A problem with the file is only logged: it must not hide what has failed."""
        if self._file is None:
            return
        partial = self._file.with_suffix(".partial")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(Failure(query, cause, time.time())._asdict()))
            partial.replace(self._file)
        except OSError as error:
            _log.warning("the failure of %s cannot be stored in %s: %s", query, self._file, error)
