"""Broker keys for a protected ZooKeeper: TLS, and who the broker is there. The names are those of Kafka 3."""

from barnabas.config.definition import (
    BOOLEAN,
    LIST,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
    Check,
    accepted,
    honoured,
    table,
)

_DIGEST = Check(
    "a user and a password with a colon between them, such as kafka:secret",
    lambda value: all(value.partition(":")[::2]),
)

KEYS_ZOOKEEPER = table(
    honoured(BOOLEAN, "zookeeper.set.acl", False),
    "Whether only the user that creates a node of ZooKeeper may read and change it. Needs "
    "barnabas.zookeeper.digest, or TLS with a certificate that is the same on all brokers.",
    honoured(PASSWORD, "barnabas.zookeeper.digest", None, _DIGEST),
    "User and password for ZooKeeper (its scheme digest) as user:password; the same on all brokers.",
    honoured(BOOLEAN, "zookeeper.ssl.client.enable", False),
    "Whether to connect to ZooKeeper over TLS.",
    accepted(STRING, "zookeeper.clientCnxnSocket", None),
    "Java class of the connection to ZooKeeper; no effect outside Java.",
    honoured(STRING, "zookeeper.ssl.keystore.location", None),
    "File with the key and certificate that are shown to ZooKeeper.",
    honoured(PASSWORD, "zookeeper.ssl.keystore.password", None),
    "Password of this key store.",
    honoured(STRING, "zookeeper.ssl.keystore.type", None),
    "Format of this key store: PEM or PKCS12; without it, the ending of the file decides.",
    honoured(STRING, "zookeeper.ssl.truststore.location", None),
    "File with the certificates that are trusted for ZooKeeper.",
    honoured(PASSWORD, "zookeeper.ssl.truststore.password", None),
    "Password of this trust store.",
    honoured(STRING, "zookeeper.ssl.truststore.type", None),
    "Format of this trust store: PEM or PKCS12; without it, the ending of the file decides.",
    honoured(STRING, "zookeeper.ssl.protocol", "TLSv1.2", None, LOW),
    "The newest TLS version that is used with ZooKeeper.",
    honoured(LIST, "zookeeper.ssl.enabled.protocols", (), None, LOW),
    "TLS versions that may be used with ZooKeeper; empty means zookeeper.ssl.protocol.",
    honoured(LIST, "zookeeper.ssl.cipher.suites", (), None, LOW),
    "Cipher suites that may be used with ZooKeeper; empty leaves it to the library.",
    honoured(STRING, "zookeeper.ssl.endpoint.identification.algorithm", "HTTPS", None, MEDIUM),
    "How the name in ZooKeeper's certificate is checked; empty checks nothing, which is not safe.",
    accepted(BOOLEAN, "zookeeper.ssl.crl.enable", False, None, LOW),
    "Whether Java checks lists of revoked certificates.",
    accepted(BOOLEAN, "zookeeper.ssl.ocsp.enable", False, None, LOW),
    "Whether Java asks for the state of certificates.",
)
