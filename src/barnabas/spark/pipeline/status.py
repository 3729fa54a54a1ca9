"""The status of a pipeline, without Spark: from its checkpoints and the committed offsets of its groups."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from barnabas.client import Admin
from barnabas.spark.pipeline.definition import Pipeline, query_names


class QueryStatus(NamedTuple):
    query: str
    group: str
    topic: str | None
    lag: int | None
    batches: int
    last_batch: str | None


def status_of(pipeline: Pipeline, directory: Path) -> list[QueryStatus]:
    """One entry for each query and each topic it reads. The topic is None if it has not read yet."""
    entries: list[QueryStatus] = []
    with Admin({"bootstrap.servers": pipeline.bootstrap, **pipeline.client}) as admin:
        for query in query_names(pipeline):
            batches, last = _batches(directory / pipeline.checkpoint / query)
            group = pipeline.group_of(query)
            lag: dict[str, int] = {}
            for partition, behind in admin.lag_of(group).items():
                lag[partition.topic] = lag.get(partition.topic, 0) + behind
            for topic, behind in sorted(lag.items()):
                entries.append(QueryStatus(query, group, topic, behind, batches, last))
            if not lag:
                entries.append(QueryStatus(query, group, None, None, batches, last))
    return entries


def _batches(checkpoint: Path) -> tuple[int, str | None]:
    """How many batches are done, and the time of the last."""
    done = [path for path in checkpoint.glob("commits/*") if path.name.isdecimal()]
    if not done:
        return 0, None
    newest = max(done, key=lambda path: int(path.name))
    moment = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    return int(newest.name) + 1, moment.strftime("%Y-%m-%d %H:%M:%S")
