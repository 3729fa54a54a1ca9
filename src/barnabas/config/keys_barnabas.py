"""Keys of our own, which Kafka does not have; described to clients only when they are set. Pure values."""

from barnabas.config.definition import BOOLEAN, INT, LOW, MEDIUM, STRING, between, honoured, internal, table

KEYS_BARNABAS = table(
    internal(honoured(INT, "barnabas.metrics.port", -1, between(-1, 65535), MEDIUM)),
    "Port of the HTTP server for /metrics; 0 takes a free one, -1 starts none.",
    internal(honoured(STRING, "barnabas.metrics.host", "127.0.0.1", None, LOW)),
    "Address that server listens on.",
    internal(honoured(BOOLEAN, "barnabas.adopt.log.dirs", False, None, LOW)),
    "Whether partitions found in log.dirs that the metadata does not know, such as those of a Kafka broker, "
    "become topics of this one at start. Otherwise their directories are renamed and named in the log.",
    internal(honoured(STRING, "barnabas.initial.users.file", None, None, LOW)),
    "File with lines name=password: users that get SCRAM credentials at start, if they have none yet.",
)
