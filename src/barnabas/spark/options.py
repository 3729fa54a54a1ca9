"""The options of the data source: one table, from which they are checked and docs/spark-options.md is
written.

Names are Spark's stock Kafka connector's, and are compared without regard to case, as Spark does. Options
that begin with `kafka.` are settings of the client and are checked by it. Touches no Spark."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from barnabas.spark.option_kinds import (
    COUNT,
    DURATION,
    FLAG,
    NAMES,
    SIZE,
    TEXT,
    WHOLE,
    WHOLE_OR_NONE,
    Kind,
    one_of,
)

CLIENT_PREFIX = "kafka."
BOTH, BATCH, STREAM = "batch, stream", "batch", "stream"

# Settings of the client that the source decides itself, with the reason that its user is told.
REFUSED_SETTINGS = {
    "auto.offset.reset": "where reading begins is said by startingOffsets",
    "key.deserializer": "keys are read as bytes; cast them in the DataFrame",
    "value.deserializer": "values are read as bytes; cast them in the DataFrame, or use decode",
    "enable.auto.commit": "the source commits offsets itself where commitOffsets names a group",
    "interceptor.classes": "interceptors are not called here",
    "bootstrap.servers": "write it as kafka.bootstrap.servers",
    "group.id": "write it as kafka.group.id",
}


class OptionError(ValueError):
    """A wrong option; its text is one sentence for the person who wrote it."""


class Option(NamedTuple):
    name: str
    kind: Kind
    default: Any
    used_in: str
    doc: str


SOURCE_OPTIONS = (
    Option("kafka.bootstrap.servers", TEXT, None, BOTH, "host:port of some brokers. Must be given."),
    Option("assign", TEXT, None, BOTH, 'The partitions to read: `{"orders":[0,1]}`.'),
    Option("subscribe", NAMES, None, BOTH, "The topics to read."),
    Option("subscribePattern", TEXT, None, BOTH, "A regular expression; topics that match it as a whole."),
    Option(
        "startingOffsets",
        TEXT,
        None,
        BOTH,
        "Where a new query begins (default: `earliest` for batch, `latest` for stream): `earliest`, `latest`"
        " (stream only), `group` (what the group of commitOffsets or kafka.group.id committed, else"
        " earliest),"
        " `now-10m` (the first record of the last ten minutes), `-100` (a hundred records before the end of"
        " each"
        ' partition), or `{"orders":{"0":23,"1":-2}}`, where -2 is earliest and -1 latest.',
    ),
    Option(
        "startingOffsetsByTimestamp",
        TEXT,
        None,
        BOTH,
        'A time per partition, in milliseconds: `{"orders":{"0":1700000000000}}`. Wins over startingOffsets.',
    ),
    Option(
        "startingTimestamp",
        WHOLE,
        None,
        BOTH,
        "One time for all partitions, in milliseconds. Wins over the two others.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        one_of("error", "latest"),
        "error",
        BOTH,
        "What to do where no record is as young as the time asked for.",
    ),
    Option(
        "endingOffsets",
        TEXT,
        "latest",
        BATCH,
        "Where a batch ends: `latest`, `now-10m`, `-100`, or JSON as in startingOffsets (without -2).",
    ),
    Option("endingOffsetsByTimestamp", TEXT, None, BATCH, "As its sibling; no such record means latest."),
    Option("endingTimestamp", WHOLE, None, BATCH, "As its sibling; no such record means latest."),
    Option(
        "failOnDataLoss",
        FLAG,
        True,
        BOTH,
        "Whether a query fails when records that it should have read are gone, because retention overtook it"
        " or"
        " a topic was deleted. `false` reads on with what there is, and says so in the log.",
    ),
    Option(
        "maxOffsetsPerTrigger", COUNT, None, STREAM, "At most so many offsets per batch, over all partitions."
    ),
    Option(
        "maxBytesPerTrigger",
        SIZE,
        None,
        STREAM,
        "At most about so many bytes as stored (compressed) per batch, judged by a sample of each partition.",
    ),
    Option("minOffsetsPerTrigger", COUNT, None, STREAM, "Wait until there are so many offsets to read ..."),
    Option("maxTriggerDelay", DURATION, 900_000, STREAM, "... but no longer than this (default 15m)."),
    Option("minPartitions", COUNT, None, BOTH, "Split large ranges until there are about so many tasks."),
    Option("maxRecordsPerPartition", COUNT, None, BOTH, "Split ranges so that no task has more offsets."),
    Option("includeHeaders", FLAG, False, BOTH, "Whether the schema has the column `headers`."),
    Option(
        "commitOffsets",
        TEXT,
        None,
        STREAM,
        "A group under which the query commits what it has finished, so that lag tools see it. It also keeps"
        " where a new query began, until its first batch is done. Use one group per query.",
    ),
    Option(
        "columns",
        NAMES,
        None,
        BOTH,
        "Read these columns only, in this order: faster. A schema given with `.schema()` does the same.",
    ),
    Option(
        "isolation.level",
        one_of("read_committed", "read_uncommitted"),
        "read_uncommitted",
        BOTH,
        "Whether records of open and aborted transactions are left out. Same as kafka.isolation.level.",
    ),
    Option("decode", one_of("none", "json", "avro"), "none", BOTH, "Make columns of the value."),
    Option(
        "metadataPrefix",
        TEXT,
        "_",
        BOTH,
        "With decode: what stands before the names of the record's own columns, as in `_offset`.",
    ),
    Option(
        "avroSchema",
        TEXT,
        None,
        BOTH,
        "The Avro schema, as JSON, into which values are read. Without a registry they were written with it"
        " too.",
    ),
    Option(
        "avroFraming",
        one_of("confluent", "none"),
        "confluent",
        BOTH,
        "What stands before the Avro data: `confluent` is a zero byte and a schema id in four bytes.",
    ),
    Option("schema.registry.url", TEXT, None, BOTH, "Where the schemas of Avro values are looked up by id."),
    Option(
        "schema.registry.subject",
        TEXT,
        None,
        BOTH,
        "Whose latest schema gives the columns (default: `<topic>-value` of the only topic).",
    ),
    Option("schema.registry.basic.auth.user.info", TEXT, None, BOTH, "`user:password` for the registry."),
    Option(
        "badRecords",
        TEXT,
        "fail",
        BOTH,
        "What to do with a value that cannot be decoded: `fail`, `null` (its columns are null, and `_error`"
        " says"
        " why), or `dlq:<topic>` (it goes there, with error and origin in headers, and not into the result).",
    ),
    Option("batchRows", COUNT, 20_000, BOTH, "At most so many rows in an Arrow batch that Spark is handed."),
    Option(
        "batchBytes", SIZE, 4 << 20, BOTH, "A batch is handed over once its keys and values are so large."
    ),
    Option(
        "fetchBytes",
        SIZE,
        None,
        BOTH,
        "What one fetch asks for (default: kafka.max.partition.fetch.bytes where that is given, else 8m).",
    ),
    Option(
        "pushFilters",
        FLAG,
        False,
        BATCH,
        "Whether filters on topic, partition, offset and timestamp narrow what is read. Needs"
        " `spark.sql.python.filterPushdown.enabled=true` in the session.",
    ),
    Option("groupIdPrefix", TEXT, "barnabas-spark", BOTH, "The client.id under which brokers see the query."),
    Option("kafkaConsumer.pollTimeoutMs", COUNT, 120_000, BOTH, "How long a task waits for records."),
    Option(
        "fetchOffset.numRetries",
        WHOLE,
        3,
        BOTH,
        "How often ends of partitions are looked up again that lie before what was read.",
    ),
    Option("fetchOffset.retryIntervalMs", WHOLE, 10, BOTH, "The pause before it is."),
    Option(
        "partition.metadata.cache.ttl.ms",
        WHOLE_OR_NONE,
        -1,
        BOTH,
        "For how long a list of partitions is used before it is asked for again; new partitions are seen"
        " then.",
    ),
)


SINK_OPTIONS = (
    Option("kafka.bootstrap.servers", TEXT, None, BOTH, "host:port of some brokers. Must be given."),
    Option("topic", TEXT, None, BOTH, "Where all rows go; wins over the column `topic`."),
    Option(
        "includeHeaders",
        FLAG,
        None,
        BOTH,
        "Whether the column `headers` is written (default: if there is one).",
    ),
    Option(
        "includeTimestamp",
        FLAG,
        False,
        BOTH,
        "Whether the column `timestamp` is the time of the records; else it is the time of writing.",
    ),
    Option(
        "delivery",
        one_of("at-least-once", "exactly-once"),
        "at-least-once",
        BOTH,
        "`at-least-once`: tasks write at once, and a task or batch that is tried again writes again."
        " `exactly-once`: the rows of a batch become visible together, once, under `read_committed`.",
    ),
    Option(
        "transactional.id",
        TEXT,
        None,
        BOTH,
        "With exactly-once: the name of the query over restarts, and of the group that keeps its marker. Two"
        " queries never share one. Must be given.",
    ),
    Option(
        "runId",
        TEXT,
        None,
        BATCH,
        "With exactly-once: the name of a job's run, remembered in its transaction. The last run that was"
        " written under a transactional.id is not written again, so that it may be tried again. Needs the"
        " option topic.",
    ),
    Option(
        "markerTopic",
        TEXT,
        None,
        STREAM,
        "With exactly-once and topics from a column: an existing topic under which the marker is kept"
        " (default: the option topic). Nothing is written to it.",
    ),
    Option(
        "onMissingMarker",
        one_of("fail", "continue"),
        "fail",
        STREAM,
        "What to do when the marker of the batch before is not there: it expired (offsets.retention.minutes),"
        " or the query was not exactly-once before. `continue` takes the batch as not yet written.",
    ),
    Option(
        "onForeignMarker",
        one_of("fail", "replace"),
        "fail",
        STREAM,
        "What to do when the marker is another query's: the checkpoint is new, or the id is used twice."
        " `replace` begins anew.",
    ),
    Option(
        "stagingBytes",
        SIZE,
        16 << 20,
        BOTH,
        "With exactly-once: a task with more than this, encoded, hands it to the driver in a file.",
    ),
    Option(
        "stagingDir",
        TEXT,
        None,
        BOTH,
        "A directory that tasks and driver share; such files are kept in its subdirectory"
        " `barnabas-staging-<user id>`, which only that user can read, until the commit. Tasks and driver"
        " must run as the same user. Default: `<checkpointLocation>.staging`, for jobs the directory for"
        " temporary files.",
    ),
    Option("checkpointLocation", TEXT, None, STREAM, "Spark's own."),
    Option("queryName", TEXT, None, STREAM, "Spark's own."),
)


def read_options(given: Mapping[str, str], table: Iterable[Option] = SOURCE_OPTIONS) -> dict[str, Any]:
    """The value of every option of a table by its name, from what the user wrote; OptionError says what is
    wrong. Options with `kafka.` in front of them are left out, except those that the table has."""
    rows = {option.name.lower(): option for option in table}
    values = {option.name: option.default for option in rows.values()}
    for name, text in given.items():
        option = rows.get(name.lower())
        if option is not None:
            values[option.name] = _value(option, text)
        elif not name.lower().startswith(CLIENT_PREFIX):
            raise _unknown(name, rows)
    return values


def client_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the client: what stands behind `kafka.`; those that the source decides are refused."""
    settings = {
        name.lower().removeprefix(CLIENT_PREFIX): text
        for name, text in given.items()
        if name.lower().startswith(CLIENT_PREFIX)
    }
    for name, reason in REFUSED_SETTINGS.items():
        if name in settings and name not in ("bootstrap.servers", "group.id"):
            raise OptionError(f"kafka.{name} cannot be set: {reason}.")
    return settings


def _value(option: Option, text: str) -> Any:
    try:
        return option.kind.parse(text)
    except ValueError:
        raise OptionError(
            f"The option {option.name} has the value {text!r}, and must be {option.kind.allowed}."
        ) from None


def _unknown(name: str, rows: Mapping[str, Option]) -> OptionError:
    reason = REFUSED_SETTINGS.get(name.lower())
    if reason is not None:
        return OptionError(f"The option {name} cannot be used: {reason}.")
    if name.lower() == "path":
        return OptionError("load() takes no path here: name topics with the option subscribe.")
    near = get_close_matches(name.lower(), rows, n=1, cutoff=0.6)
    hint = f"; did you mean {rows[near[0]].name}?" if near else "; docs/spark-options.md lists them."
    return OptionError(f"The data source barnabas has no option {name}{hint}")
