"""The options of the data source that the sources and sinks of a pipeline use. Touches no Spark, so that they
can be checked before anything is started."""

from collections.abc import Mapping

from barnabas.spark.pipeline.definition import DECODED, Pipeline, Source, TopicSink
from barnabas.spark.pipeline.schemas import decode_options

EXACTLY_ONCE = "exactly-once"
# A batch reads at most this much of a backlog, as stored: so batches end within seconds to minutes, show
# progress, and need the same memory for a small and a large backlog.
BATCH_BYTES = "256m"


def source_options(pipeline: Pipeline, source: Source, group: str) -> dict[str, str]:
    """The options of a query that reads a source; its own options override ours."""
    options = {
        **_client(pipeline, source.cluster),
        "startingOffsets": source.start,
        "commitOffsets": group,
        "isolation.level": "read_committed",
        "maxBytesPerTrigger": BATCH_BYTES,
    }
    if source.pattern is not None:
        options["subscribePattern"] = source.pattern
    else:
        options["subscribe"] = ",".join(source.topics)
    if source.decode in DECODED:
        options |= decode_options(source)
    return _merged(options, source.options)


def sink_options(pipeline: Pipeline, sink: TopicSink) -> dict[str, str]:
    """The options of a query that writes to a topic; its own options override ours."""
    options = {**_client(pipeline, sink.cluster), "topic": sink.topic, "delivery": sink.delivery}
    if sink.delivery == EXACTLY_ONCE:
        options["transactional.id"] = sink.transactional_id or pipeline.transactional_id_of(sink.name)
    return _merged(options, sink.options)


def dead_letter_options(pipeline: Pipeline, query: str) -> dict[str, str]:
    """The options of a query that writes dead letters."""
    return {
        **_client(pipeline, None),
        "topic": str(pipeline.dead_letters),
        "delivery": EXACTLY_ONCE,
        "transactional.id": pipeline.transactional_id_of(query),
        "includeHeaders": "true",
    }


def _merged(options: dict[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The options of the user override ours; case does not matter, as in Spark."""
    names = {name.lower() for name in given}
    return {**{name: text for name, text in options.items() if name.lower() not in names}, **given}


def _client(pipeline: Pipeline, cluster: str | None) -> dict[str, str]:
    settings = pipeline.cluster(cluster).settings
    return {f"kafka.{name}": value for name, value in settings.items()}
