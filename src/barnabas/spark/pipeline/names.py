"""The queries of a pipeline by name: one for each sink, and one for each place where rows are put aside."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.spark.pipeline.definition import Pipeline


class Aside(NamedTuple):
    """A query that carries rows of `frame` to the dead letters: undecodable values, or rejected rows."""

    query: str
    is_undecodable: bool
    frame: str


def asides(pipeline: Pipeline) -> Iterator[Aside]:
    for name, source in pipeline.sources.items():
        if source.bad_records == "quarantine":
            yield Aside(f"undecodable-{name}", True, name)
    for name, rules in pipeline.quality.items():
        if any(rule.action == "quarantine" for rule in rules):
            yield Aside(f"rejected-{name}", False, name)


def query_names(pipeline: Pipeline) -> list[str]:
    return [sink.name for sink in pipeline.sinks] + [aside.query for aside in asides(pipeline)]
