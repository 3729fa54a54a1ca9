"""The directory of a pipeline's checkpoints: the record of the queries and their members (queries.json), and
what Spark stores about a query."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.spark.pipeline.definition import Pipeline, path_in
from barnabas.spark.pipeline.grouping import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "queries.json"
# By default Spark starts a process (`readlink`) for most files of a checkpoint in a local directory, some
# hundred in a short run. This class renames files in the same way and starts none.
FILES = "spark.sql.streaming.checkpointFileManagerClass"
LOCAL_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


class Checkpoints:
    """Spark reads and writes files on other file systems (hdfs://..., s3a://...). Without Spark only local
    files are seen."""

    def __init__(self, pipeline: Pipeline, directory: Path, spark: "SparkSession | None" = None) -> None:
        self._root = path_in(directory, pipeline.checkpoint)
        self._is_local = "://" not in self._root
        self._spark = spark

    def set_up(self) -> None:
        """Let Spark write the checkpoints as it is best for their file system, unless somebody has chosen."""
        from pyspark.sql.utils import is_remote

        assert self._spark is not None, "only a run writes checkpoints"
        # A Connect server may have another version of Spark, with other classes.
        if self._is_local and not is_remote() and self._spark.conf.get(FILES, None) is None:
            self._spark.conf.set(FILES, LOCAL_FILES)

    def path(self, query: str) -> str:
        return f"{self._root}/{query}"

    def has(self, query: str) -> bool:
        """Whether the query was started before: Spark writes its metadata first."""
        return self._read(f"{query}/metadata") is not None

    def query_id(self, query: str) -> str:
        """Spark's id of a query that was started: a query with a new checkpoint has a new id."""
        metadata = self._read(f"{query}/metadata")
        if metadata is None:
            raise FileNotFoundError(
                f"The checkpoint {self.path(query)} has no metadata: it was deleted while the query runs."
            )
        return str(json.loads(metadata)["id"])

    def record(self) -> Record:
        text = self._read(FILE)
        return {} if text is None else dict(json.loads(text))

    def keep(self, record: Record) -> None:
        """Store the record; it is complete or not there, even after a crash."""
        if record == self.record():
            return
        text = json.dumps(record)
        if not self._is_local:
            assert self._spark is not None, "only a run stores a record"
            frame = self._spark.createDataFrame([(text,)], "value string")
            frame.coalesce(1).write.mode("overwrite").text(self.path(FILE))
            return
        place = Path(self.path(FILE))
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_suffix(".partial")
        partial.write_text(text)
        partial.replace(place)

    def _read(self, name: str) -> str | None:
        if self._is_local:
            place = Path(self.path(name))
            return place.read_text() if place.exists() else None
        if self._spark is None:
            return None
        from pyspark.errors import AnalysisException

        try:
            row = self._spark.read.text(self.path(name), wholetext=True).head()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise
        return None if row is None else str(row[0])
