"""Every topic key, with the broker keys that give its default, in the order they are tried."""

from barnabas.config.definition import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    THROTTLED_REPLICAS,
    accepted,
    at_least,
    between,
    between_or,
    honoured,
    inherits,
    internal,
    items_of,
    one_of,
    table,
)

TOPIC_KEYS = table(
    inherits(
        honoured(LIST, "cleanup.policy", ("delete",), items_of("compact", "delete")), "log.cleanup.policy"
    ),
    "What happens to old segments: delete drops them by age and size, compact keeps the newest record of "
    "each key; empty keeps everything.",
    inherits(
        honoured(
            STRING,
            "compression.type",
            "producer",
            one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        ),
        "compression.type",
    ),
    "Codec in which batches are stored; producer keeps what the producer chose.",
    inherits(honoured(INT, "compression.gzip.level", -1, between_or(1, 9, -1)), "compression.gzip.level"),
    "Level used when the broker compresses with gzip.",
    inherits(honoured(INT, "compression.lz4.level", 9, between(1, 17)), "compression.lz4.level"),
    "Level used when the broker compresses with lz4.",
    inherits(honoured(INT, "compression.zstd.level", 3, between(-131_072, 22)), "compression.zstd.level"),
    "Level used when the broker compresses with zstd.",
    inherits(
        honoured(LONG, "delete.retention.ms", 86_400_000, at_least(0)), "log.cleaner.delete.retention.ms"
    ),
    "Time a tombstone stays readable after a compaction has kept it.",
    inherits(honoured(LONG, "file.delete.delay.ms", 60_000, at_least(0)), "log.segment.delete.delay.ms"),
    "Time between taking a segment out of the log and removing its files.",
    inherits(honoured(LONG, "flush.messages", LONG_MAX, at_least(1)), "log.flush.interval.messages"),
    "Records a partition may hold that are not yet forced to disk.",
    inherits(
        honoured(LONG, "flush.ms", LONG_MAX, at_least(0)),
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
    ),
    "Time a record may wait before its log is forced to disk.",
    accepted(LIST, "follower.replication.throttled.replicas", (), THROTTLED_REPLICAS),
    "Replicas whose fetching is throttled, as partition:broker items; * means all.",
    inherits(honoured(INT, "index.interval.bytes", 4096, at_least(0)), "log.index.interval.bytes"),
    "Bytes of records between two entries of an index.",
    internal(honoured(INT, "internal.segment.bytes", None, at_least(1))),
    "Segment size below the smallest that segment.bytes allows; for tests.",
    accepted(LIST, "leader.replication.throttled.replicas", (), THROTTLED_REPLICAS),
    "Replicas whose sending is throttled, as partition:broker items; * means all.",
    inherits(accepted(LONG, "local.retention.bytes", -2, at_least(-2)), "log.local.retention.bytes"),
    "Size that segments already copied to tiered storage may take on local disk; -2 follows retention.bytes.",
    inherits(accepted(LONG, "local.retention.ms", -2, at_least(-2)), "log.local.retention.ms"),
    "Time that segments already copied to tiered storage stay on local disk; -2 follows retention.ms.",
    inherits(
        honoured(LONG, "max.compaction.lag.ms", LONG_MAX, at_least(1)), "log.cleaner.max.compaction.lag.ms"
    ),
    "Time after which a record must have been considered by compaction.",
    inherits(honoured(INT, "max.message.bytes", 1_048_588, at_least(0)), "message.max.bytes"),
    "Largest record batch the topic takes, after compression.",
    inherits(
        honoured(LONG, "message.timestamp.after.max.ms", 3_600_000, at_least(0)),
        "log.message.timestamp.after.max.ms",
    ),
    "How far a record's timestamp may lie after the broker's clock.",
    inherits(
        honoured(LONG, "message.timestamp.before.max.ms", LONG_MAX, at_least(0)),
        "log.message.timestamp.before.max.ms",
    ),
    "How far a record's timestamp may lie before the broker's clock.",
    inherits(
        honoured(STRING, "message.timestamp.type", "CreateTime", one_of("CreateTime", "LogAppendTime")),
        "log.message.timestamp.type",
    ),
    "Whether a record keeps the time its producer gave it or gets the time of the append.",
    inherits(
        honoured(DOUBLE, "min.cleanable.dirty.ratio", 0.5, between(0, 1)), "log.cleaner.min.cleanable.ratio"
    ),
    "Share of a log that must be uncleaned before it is compacted.",
    inherits(honoured(LONG, "min.compaction.lag.ms", 0, at_least(0)), "log.cleaner.min.compaction.lag.ms"),
    "Time a record stays before compaction may remove it.",
    inherits(honoured(INT, "min.insync.replicas", 1, at_least(1)), "min.insync.replicas"),
    "Replicas that must be in sync before a produce with acks=all is accepted.",
    inherits(honoured(BOOLEAN, "preallocate", False), "log.preallocate"),
    "Whether a new segment file takes its full size on disk at once.",
    accepted(BOOLEAN, "remote.log.copy.disable", False),
    "Whether nothing more is copied to tiered storage, which stays readable.",
    accepted(BOOLEAN, "remote.log.delete.on.disable", False),
    "Whether switching tiered storage off deletes what it holds.",
    accepted(BOOLEAN, "remote.storage.enable", False),
    "Whether the topic uses tiered storage; must stay false, as this release has none.",
    inherits(honoured(LONG, "retention.bytes", -1), "log.retention.bytes"),
    "Size to which each partition is cut by deleting its oldest segments; -1 sets no limit.",
    inherits(
        honoured(LONG, "retention.ms", 604_800_000, at_least(-1)),
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ),
    "How long in milliseconds a closed segment is kept; -1 keeps it forever.",
    inherits(honoured(INT, "segment.bytes", 1_073_741_824, at_least(1_048_576)), "log.segment.bytes"),
    "Size at which a segment is closed and the next one is started.",
    inherits(honoured(INT, "segment.index.bytes", 10_485_760, at_least(4)), "log.index.size.max.bytes"),
    "Largest size of an offset index or time index; a full index rolls the segment.",
    inherits(
        honoured(LONG, "segment.jitter.ms", 0, at_least(0)), "log.roll.jitter.ms", "log.roll.jitter.hours"
    ),
    "Largest random time subtracted from the age of a segment, so that segments do not all roll at once.",
    inherits(honoured(LONG, "segment.ms", 604_800_000, at_least(1)), "log.roll.ms", "log.roll.hours"),
    "Age in milliseconds at which a segment is closed even if it is not full.",
    inherits(accepted(BOOLEAN, "unclean.leader.election.enable", False), "unclean.leader.election.enable"),
    "Whether a replica that has fallen behind may lead when no other is left, which can lose records; "
    "partitions have one replica yet.",
)
