"""Checks whether the topics of a pipeline exist, if a broker answers. A missing one is no mistake in the
file: somebody may create it before the pipeline runs."""

from collections.abc import Iterator

from barnabas.client import Admin
from barnabas.client.errors import KafkaError
from barnabas.spark.pipeline.definition import Cluster, Pipeline, TopicSink
from barnabas.spark.pipeline.problems import meant

ANSWER_SECONDS = 4.0


def topic_warnings(pipeline: Pipeline) -> list[str]:
    """One sentence for each topic that does not exist, or one for each cluster that does not answer."""
    used = list(_topics(pipeline))
    clusters = dict.fromkeys(cluster for cluster, _, _ in used)
    return [
        sentence
        for cluster in clusters
        for sentence in _warnings(
            pipeline.cluster(cluster), [each[1:] for each in used if each[0] == cluster]
        )
    ]


def _warnings(cluster: Cluster, used: list[tuple[str, str]]) -> list[str]:
    try:
        with Admin(cluster.settings) as admin:
            existing = sorted(str(name) for name in admin.list_topics(timeout=ANSWER_SECONDS))
    except KafkaError as error:
        return [f"The topics were not checked, because {cluster.bootstrap} does not answer: {error.message}."]
    return [
        f"{what} {topic}, which does not exist; {meant(topic, existing)}"
        for what, topic in used
        if topic not in existing
    ]


def _topics(pipeline: Pipeline) -> Iterator[tuple[str | None, str, str]]:
    """The cluster of a topic, what it is for, and its name."""
    for name, source in pipeline.sources.items():
        for topic in source.topics:
            yield source.cluster, f"Source {name} reads the topic", topic
    for sink in pipeline.sinks:
        if isinstance(sink, TopicSink):
            yield sink.cluster, f"The sink {sink.name} writes to the topic", sink.topic
    if pipeline.dead_letters is not None:
        yield None, "Dead letters go to the topic", pipeline.dead_letters
