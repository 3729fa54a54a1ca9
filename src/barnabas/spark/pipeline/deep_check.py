"""What only Spark can tell about a pipeline: whether SQL, schemas and columns make sense. Reads nothing."""

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.spark.pipeline.definition import Pipeline, TableSink
from barnabas.spark.pipeline.queries import Place


def check_with_spark(spark: SparkSession, pipeline: Pipeline, directory: Path) -> list[str]:
    """Sentences on what is wrong; none where all is well. Steps after a wrong one are not looked at."""
    place = Place(spark, pipeline, directory)
    try:
        frames = place.frames("check")
    except (PySparkException, TypeError, ValueError) as error:
        return [str(error).partition("\n")[0]]
    problems = []
    for sink in pipeline.sinks:
        there = frames[sink.source].columns
        key = (sink.key,) if isinstance(sink.key, str) else sink.key or ()
        wanted = (*key, *sink.partition_by) if isinstance(sink, TableSink) else key
        problems += [
            f"The sink {sink.name} names the column {name}, and {sink.source} has only {', '.join(there)}."
            for name in wanted
            if name not in there
        ]
    return problems
