"""The headers of a dead letter: what is wrong with it and where it came from. Pipelines add the last two."""

ERROR_HEADER = "barnabas.error"
TOPIC_HEADER = "barnabas.topic"
PARTITION_HEADER = "barnabas.partition"
OFFSET_HEADER = "barnabas.offset"
TIMESTAMP_HEADER = "barnabas.timestamp"
STEP_HEADER = "barnabas.step"
PIPELINE_HEADER = "barnabas.pipeline"

OURS = frozenset(
    (
        ERROR_HEADER,
        TOPIC_HEADER,
        PARTITION_HEADER,
        OFFSET_HEADER,
        TIMESTAMP_HEADER,
        STEP_HEADER,
        PIPELINE_HEADER,
    )
)
