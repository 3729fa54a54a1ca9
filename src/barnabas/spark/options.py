"""The options of the data source in one table. It is used to check options and to write
docs/spark-options.md.

Options have the names of Spark's own Kafka connector, and case does not matter, as in Spark. Options that
begin with `kafka.` are settings of the client, which checks them. Touches no Spark."""

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

# Settings of the client that the source decides itself, with the reason for the user.
REFUSED_SETTINGS = {
    "auto.offset.reset": "use startingOffsets to say where reading begins",
    "key.deserializer": "keys are read as bytes; cast them in the DataFrame",
    "value.deserializer": "values are read as bytes; cast them in the DataFrame, or use decode",
    "enable.auto.commit": "the source itself commits offsets if commitOffsets names a group",
    "interceptor.classes": "the source does not call interceptors",
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
    Option("kafka.bootstrap.servers", TEXT, None, BOTH, "host:port of some brokers. Required."),
    Option("assign", TEXT, None, BOTH, 'The partitions to read: `{"orders":[0,1]}`.'),
    Option("subscribe", NAMES, None, BOTH, "The topics to read."),
    Option(
        "subscribePattern",
        TEXT,
        None,
        BOTH,
        "A regular expression: read the topics whose whole name matches.",
    ),
    Option(
        "startingOffsets",
        TEXT,
        None,
        BOTH,
        "Where a new query begins (default: `earliest` for batch, `latest` for stream): `earliest`, `latest`"
        " (stream only), `group` (the offsets that the group of commitOffsets or kafka.group.id committed,"
        " otherwise earliest), `now-10m` (the first record of the last ten minutes), `-100` (a hundred"
        ' records before the end of each partition), or `{"orders":{"0":23,"1":-2}}`, where -2 is earliest'
        " and -1 latest.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        TEXT,
        None,
        BOTH,
        'A time for each partition, in milliseconds since 1970: `{"orders":{"0":1700000000000}}`. Overrides'
        " startingOffsets.",
    ),
    Option(
        "startingTimestamp",
        WHOLE,
        None,
        BOTH,
        "One time for all partitions, in milliseconds since 1970. Overrides the two options above.",
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        one_of("error", "latest"),
        "error",
        BOTH,
        "What to do if a partition has no record at or after the time: fail, or begin at the end.",
    ),
    Option(
        "endingOffsets",
        TEXT,
        "latest",
        BATCH,
        "Where a batch ends: `latest`, `now-10m`, `-100`, or JSON as in startingOffsets (without -2).",
    ),
    Option(
        "endingOffsetsByTimestamp",
        TEXT,
        None,
        BATCH,
        "Like startingOffsetsByTimestamp. A partition without such a record is read to its end.",
    ),
    Option(
        "endingTimestamp",
        WHOLE,
        None,
        BATCH,
        "Like startingTimestamp. A partition without such a record is read to its end.",
    ),
    Option(
        "failOnDataLoss",
        FLAG,
        True,
        BOTH,
        "Whether a query fails if records were deleted before it had read them, by retention or with their"
        " topic. `false`: the query goes on without them and logs a warning.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        COUNT,
        None,
        STREAM,
        "The highest number of offsets in a batch, in all partitions.",
    ),
    Option(
        "maxBytesPerTrigger",
        SIZE,
        None,
        STREAM,
        "The highest number of bytes in a batch, as stored (compressed): an estimate from a sample of each"
        " partition.",
    ),
    Option(
        "minOffsetsPerTrigger",
        COUNT,
        None,
        STREAM,
        "Do not start a batch before there are this many offsets to read, or maxTriggerDelay has passed.",
    ),
    Option(
        "maxTriggerDelay",
        DURATION,
        900_000,
        STREAM,
        "How long minOffsetsPerTrigger may delay a batch (default 15m).",
    ),
    Option("minPartitions", COUNT, None, BOTH, "Split large ranges so that there are about this many tasks."),
    Option(
        "maxRecordsPerPartition",
        COUNT,
        None,
        BOTH,
        "Split ranges so that no task reads more offsets than this.",
    ),
    Option(
        "maxPartitions",
        COUNT,
        None,
        BOTH,
        "The highest number of tasks: if there are more ranges, a task reads several of them. To begin a task"
        " takes about as long as to read some ten thousand rows.",
    ),
    Option("includeHeaders", FLAG, False, BOTH, "Whether the schema has the column `headers`."),
    Option(
        "commitOffsets",
        TEXT,
        None,
        STREAM,
        "A group for which the query commits the offsets that it has finished, so that tools can show its"
        " lag. Until the first batch is done, the group also stores where the query began. Use one group per"
        " query.",
    ),
    Option(
        "columns",
        NAMES,
        None,
        BOTH,
        "Read only these columns, in this order; this is faster. A schema given with `.schema()` does the"
        " same.",
    ),
    Option(
        "isolation.level",
        one_of("read_committed", "read_uncommitted"),
        "read_uncommitted",
        BOTH,
        "`read_committed` leaves out records of open and aborted transactions. Same as"
        " kafka.isolation.level.",
    ),
    Option(
        "decode",
        one_of("none", "json", "csv", "avro", "protobuf"),
        "none",
        BOTH,
        "The format of values to be decoded into columns. A value of CSV is one line; its fields are the"
        " columns in order, and an empty field is null.",
    ),
    Option(
        "envelope",
        one_of("none", "debezium"),
        "none",
        BOTH,
        "What is around the rows in values of JSON or Avro. `debezium`: the changes of a database; the"
        " columns are those of a row, after the change or before its deletion, and `_deleted`, a boolean.",
    ),
    Option("csvDelimiter", TEXT, ",", BOTH, "The character between the fields of CSV."),
    Option(
        "protobufDescriptors",
        TEXT,
        None,
        BOTH,
        "The file that `protoc --include_imports --descriptor_set_out=FILE` writes, in base64.",
    ),
    Option("protobufMessage", TEXT, None, BOTH, "The message of Protobuf values, such as `shop.Order`."),
    Option(
        "protobufFraming",
        one_of("none", "confluent"),
        "none",
        BOTH,
        "The bytes before the Protobuf data: `confluent` is a zero byte, a schema id in four bytes and the"
        " indexes of the message, which are not used.",
    ),
    Option(
        "metadataPrefix",
        TEXT,
        "_",
        BOTH,
        "With decode: the prefix of the record's own columns, as in `_offset`.",
    ),
    Option(
        "avroSchema",
        TEXT,
        None,
        BOTH,
        "The Avro schema, as JSON, with which values are read. Without a registry it must also be the schema"
        " with which they were written.",
    ),
    Option(
        "avroFraming",
        one_of("confluent", "none"),
        "confluent",
        BOTH,
        "The bytes before the Avro data: `confluent` is a zero byte and a schema id in four bytes.",
    ),
    Option("schema.registry.url", TEXT, None, BOTH, "The schema registry for Avro values."),
    Option(
        "schema.registry.subject",
        TEXT,
        None,
        BOTH,
        "The subject whose latest schema gives the columns (default: `<topic>-value`, if only one topic is"
        " read).",
    ),
    Option("schema.registry.basic.auth.user.info", TEXT, None, BOTH, "`user:password` for the registry."),
    Option(
        "badRecords",
        TEXT,
        "fail",
        BOTH,
        "What to do with a value that cannot be decoded: `fail`; `null` (its columns are null, and `_error`"
        " says why); or `dlq:<topic>` (the record is written to that topic, with the error and its origin in"
        " headers, and is not in the result).",
    ),
    Option("batchRows", COUNT, 20_000, BOTH, "The highest number of rows in an Arrow batch for Spark."),
    Option(
        "batchBytes",
        SIZE,
        4 << 20,
        BOTH,
        "An Arrow batch ends when its keys and values have this many bytes.",
    ),
    Option(
        "fetchBytes",
        SIZE,
        None,
        BOTH,
        "The size of one fetch (default: kafka.max.partition.fetch.bytes if given, otherwise 8m).",
    ),
    Option(
        "pushFilters",
        FLAG,
        False,
        BATCH,
        "Whether filters on topic, partition, offset and timestamp reduce what is read. Needs"
        " `spark.sql.python.filterPushdown.enabled=true` in the session.",
    ),
    Option(
        "rangesOnly",
        FLAG,
        False,
        STREAM,
        "The rows are the ranges of offsets that a batch would read (topic, partition, start, end), for a"
        " sink that reads the records itself.",
    ),
    Option("groupIdPrefix", TEXT, "barnabas-spark", BOTH, "The client.id of the query."),
    Option("kafkaConsumer.pollTimeoutMs", COUNT, 120_000, BOTH, "How long a task waits for records."),
    Option(
        "fetchOffset.numRetries",
        WHOLE,
        3,
        BOTH,
        "How often the end of a partition is looked up again if it is before the offset that was read last.",
    ),
    Option("fetchOffset.retryIntervalMs", WHOLE, 10, BOTH, "The pause before each of these lookups."),
    Option(
        "partition.metadata.cache.ttl.ms",
        WHOLE_OR_NONE,
        -1,
        BOTH,
        "How long the list of partitions is used before it is read again; new partitions are found then.",
    ),
)


SINK_OPTIONS = (
    Option("kafka.bootstrap.servers", TEXT, None, BOTH, "host:port of some brokers. Required."),
    Option("topic", TEXT, None, BOTH, "The topic for all rows; overrides the column `topic`."),
    Option(
        "includeHeaders",
        FLAG,
        None,
        BOTH,
        "Whether the column `headers` is written (default: yes, if the DataFrame has it).",
    ),
    Option(
        "includeTimestamp",
        FLAG,
        False,
        BOTH,
        "Whether the column `timestamp` becomes the timestamp of records; otherwise it is the time of"
        " writing.",
    ),
    Option(
        "delivery",
        one_of("at-least-once", "exactly-once"),
        "at-least-once",
        BOTH,
        "`at-least-once`: tasks write immediately, and a task or batch that is tried again writes again."
        " `exactly-once`: the rows of a batch become visible together and once, to consumers with"
        " `read_committed`.",
    ),
    Option(
        "transactional.id",
        TEXT,
        None,
        BOTH,
        "With exactly-once: a name for the query that stays the same over restarts. It is also the group that"
        " stores the query's marker. Two queries must not share it. Required.",
    ),
    Option(
        "runId",
        TEXT,
        None,
        BATCH,
        "With exactly-once: a name for this run of the job, stored in its transaction. If the last run of"
        " the transactional.id has the same name, nothing is written, so a job may be tried again. Needs the"
        " option topic.",
    ),
    Option(
        "queryId",
        TEXT,
        None,
        BATCH,
        "With exactly-once, for `df.write` in foreachBatch: a name for the query that stays the same over"
        " restarts. Needs batchId.",
    ),
    Option(
        "batchId",
        WHOLE,
        None,
        BATCH,
        "With queryId: the number that foreachBatch passes. A batch that Spark runs again is not written"
        " again.",
    ),
    Option(
        "markerTopic",
        TEXT,
        None,
        BOTH,
        "With exactly-once and topics from a column: an existing topic for the marker, which is an offset of"
        " its partition 0 (default: the option topic). Nothing is written to it.",
    ),
    Option(
        "onMissingMarker",
        one_of("fail", "continue"),
        "fail",
        BOTH,
        "What to do if the marker of the previous batch is missing: it expired (offsets.retention.minutes),"
        " or the query was not exactly-once before. `continue` writes the batch.",
    ),
    Option(
        "onForeignMarker",
        one_of("fail", "replace"),
        "fail",
        BOTH,
        "What to do if the marker belongs to another query: the checkpoint is new, or two queries share the"
        " id. `replace` replaces the marker.",
    ),
    Option(
        "stagingBytes",
        SIZE,
        16 << 20,
        BOTH,
        "With exactly-once: a task with more encoded bytes than this passes them to the driver in a file.",
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
    """The value of every option of a table, by name; OptionError if one is wrong. Options that begin with
    `kafka.` are left out, except those in the table."""
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
    """The settings of the client: the options that begin with `kafka.`. Those that the source decides itself
    are refused."""
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
            f"The option {option.name} has the value {text!r}, but must be {option.kind.allowed}."
        ) from None


def _unknown(name: str, rows: Mapping[str, Option]) -> OptionError:
    reason = REFUSED_SETTINGS.get(name.lower())
    if reason is not None:
        return OptionError(f"The option {name} cannot be used: {reason}.")
    if name.lower() == "path":
        return OptionError("load() takes no path: name the topics with the option subscribe.")
    near = get_close_matches(name.lower(), rows, n=1, cutoff=0.6)
    hint = f"; did you mean {rows[near[0]].name}?" if near else "; docs/spark-options.md lists all options."
    return OptionError(f"The data source barnabas has no option {name}{hint}")
