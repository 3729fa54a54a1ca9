"""The settings of the clients as typed keyword arguments, for editors and type checkers.

Written by `python -m tools.write_client_settings` from the tables in `client/keys.py`; change those."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypedDict

from barnabas.client.generic import Deserializer, K, V


class CommonSettings(TypedDict, total=False):
    """Settings that all clients have."""

    bootstrap_servers: str | Sequence[str]
    """host:port of some brokers; the client learns the others from them."""
    client_dns_lookup: str
    """How names are resolved; all addresses of a name are tried."""
    client_id: str
    """The name of this client in the broker's logs and quotas."""
    connections_max_idle_ms: int
    """A connection without traffic for this long is closed; -1 means never."""
    enable_metrics_push: bool
    """Whether metrics may be pushed to the broker."""
    https_ca_location: str | None
    """PEM file with certificates that are trusted for the token endpoint."""
    metadata_max_age_ms: int
    """Metadata older than this is fetched again."""
    metadata_recovery_rebootstrap_trigger_ms: int
    """How long the client may fail to get metadata before it starts again from bootstrap.servers."""
    metadata_recovery_strategy: str
    """What to do when no known broker can be reached: start again from bootstrap.servers, or keep
    trying."""
    metric_reporters: Any
    """Classes that receive metrics."""
    metrics_num_samples: int
    """How many samples a metric keeps."""
    metrics_recording_level: str
    """The level from which metrics are recorded."""
    metrics_sample_window_ms: int
    """How long one sample of a metric lasts."""
    receive_buffer_bytes: int
    """SO_RCVBUF of the sockets; -1, which is not Kafka's default, lets the system choose the size."""
    reconnect_backoff_max_ms: int
    """The longest pause between attempts to connect."""
    reconnect_backoff_ms: int
    """The first pause before the client connects again to a broker after a failure."""
    request_timeout_ms: int
    """How long the client waits for the answer to one request."""
    retry_backoff_max_ms: int
    """The longest pause between attempts of a request."""
    retry_backoff_ms: int
    """The first pause before a failed request is sent again."""
    sasl_client_callback_handler_class: Any
    """Java class that answers a SASL server; Java classes are not loaded."""
    sasl_jaas_config: str | None
    """Login module and its options, as for the Java client."""
    sasl_kerberos_service_name: str | None
    """Kerberos name of the service; GSSAPI is not supported."""
    sasl_login_callback_handler_class: Any
    """Java class that fetches tokens; only Kafka's OAuthBearerLoginCallbackHandler is known."""
    sasl_login_class: Any
    """Java class for logging in; Java classes are not loaded."""
    sasl_login_connect_timeout_ms: int | None
    """Time to reach the token endpoint; 10 seconds if not set."""
    sasl_login_read_timeout_ms: int | None
    """Time for an answer of the token endpoint; 10 seconds if not set."""
    sasl_login_refresh_buffer_seconds: int
    """Time before its end at which a token is replaced at the latest."""
    sasl_login_refresh_min_period_seconds: int
    """Shortest time between two refreshes of a token."""
    sasl_login_refresh_window_factor: float
    """Share of a token's life after which it is replaced."""
    sasl_login_refresh_window_jitter: float
    """Random share added to that moment."""
    sasl_login_retry_backoff_max_ms: int
    """Longest pause before the token endpoint is asked again."""
    sasl_login_retry_backoff_ms: int
    """First pause before the token endpoint is asked again."""
    sasl_mechanism: str | None
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."""
    sasl_mechanisms: str | None
    """librdkafka's name for sasl.mechanism."""
    sasl_oauth_token_provider: Callable[[], str | tuple[str, float]] | None
    """A function that returns a token, or a token and its end in Unix seconds."""
    sasl_oauthbearer_client_credentials_client_id: str | None
    """Client id for the token endpoint."""
    sasl_oauthbearer_client_credentials_client_secret: str | None
    """Client secret for the token endpoint."""
    sasl_oauthbearer_client_id: str | None
    """librdkafka's name for the client id."""
    sasl_oauthbearer_client_secret: str | None
    """librdkafka's name for the client secret."""
    sasl_oauthbearer_extensions: str | None
    """Extensions that are sent with a token: name=value, with commas between them."""
    sasl_oauthbearer_method: str | None
    """librdkafka's choice of how tokens are fetched; the endpoint decides it here."""
    sasl_oauthbearer_scope: str | None
    """Scope that is asked for with a token."""
    sasl_oauthbearer_token_endpoint_url: str | None
    """Where tokens are asked for (https:), or a file with a token (file:)."""
    sasl_password: str | None
    """The password of PLAIN and SCRAM, in place of sasl.jaas.config."""
    sasl_username: str | None
    """The user of PLAIN and SCRAM, in place of sasl.jaas.config."""
    security_protocol: str
    """How connections are protected: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT or SASL_SSL."""
    security_providers: str | None
    """Java's security providers; Java classes are not loaded."""
    send_buffer_bytes: int
    """SO_SNDBUF of the sockets; -1 means the system's default."""
    socket_connection_setup_timeout_max_ms: int
    """How long later attempts to connect may take."""
    socket_connection_setup_timeout_ms: int
    """How long the first attempt to connect may take."""
    ssl_ca_location: str | None
    """librdkafka's name for a PEM file with trusted certificates."""
    ssl_ca_pem: str | None
    """librdkafka's name for trusted certificates in PEM form."""
    ssl_certificate_location: str | None
    """librdkafka's name for a PEM file with the client's certificates."""
    ssl_certificate_pem: str | None
    """librdkafka's name for the client's certificates in PEM form."""
    ssl_cipher_suites: str | Sequence[str]
    """Cipher suites that may be used; empty leaves it to the library."""
    ssl_enabled_protocols: str | Sequence[str]
    """TLS versions that may be used."""
    ssl_endpoint_identification_algorithm: str
    """How the name in a broker's certificate is checked; empty checks nothing, which is not safe."""
    ssl_engine_factory_class: Any
    """Java class that makes TLS engines; Java classes are not loaded."""
    ssl_key_location: str | None
    """librdkafka's name for a PEM file with the client's key."""
    ssl_key_password: str | None
    """Password of the private key."""
    ssl_key_pem: str | None
    """librdkafka's name for the client's key in PEM form."""
    ssl_keymanager_algorithm: str
    """Java's key manager; no effect outside Java."""
    ssl_keystore_certificate_chain: str | None
    """Certificates of the key in PEM form."""
    ssl_keystore_key: str | None
    """Private key in PEM form, in place of a file."""
    ssl_keystore_location: str | None
    """File with the client's key and certificate, if brokers ask for one."""
    ssl_keystore_password: str | None
    """Password of the key store."""
    ssl_keystore_type: str
    """Format of the key store: PEM or PKCS12. With JKS, Kafka's default, PKCS12 is read too."""
    ssl_protocol: str
    """The newest TLS version that is used."""
    ssl_provider: str | None
    """Java's TLS provider; no effect outside Java."""
    ssl_secure_random_implementation: str | None
    """Java's source of random numbers; no effect outside Java."""
    ssl_trustmanager_algorithm: str
    """Java's trust manager; no effect outside Java."""
    ssl_truststore_certificates: str | None
    """Trusted certificates in PEM form, in place of a file."""
    ssl_truststore_location: str | None
    """File with the certificates that the client trusts; without one, those of the system are
    trusted."""
    ssl_truststore_password: str | None
    """Password of the trust store."""
    ssl_truststore_type: str
    """Format of the trust store: PEM or PKCS12. With JKS, Kafka's default, PKCS12 is read too."""


class AdminSettings(CommonSettings, total=False):
    """Settings of Admin and AsyncAdmin."""

    default_api_timeout_ms: int
    """How long a method may take if it gets no timeout argument."""
    retries: int
    """How often a failed request is sent again within default.api.timeout.ms."""


class ProducerSettings(CommonSettings, total=False):
    """Settings of producers."""

    acks: str | int
    """Who must write a batch before it is confirmed: all in-sync replicas, the leader (1), nobody
    (0)."""
    batch_size: int
    """Bytes of records that are collected for one partition before they are sent."""
    buffer_memory: int
    """Bytes of records that may wait to be sent; send() blocks when this is used up."""
    compression_gzip_level: int
    """The level of gzip; -1 is its default."""
    compression_lz4_level: int
    """The level of lz4."""
    compression_type: str
    """How batches are compressed."""
    compression_zstd_level: int
    """The level of zstd."""
    delivery_timeout_ms: int
    """A record that is not confirmed within this time has failed."""
    enable_idempotence: bool
    """Whether the broker removes duplicates, so that a retry never writes a record twice."""
    interceptor_classes: Any
    """Objects with on_send and on_acknowledgement."""
    key_serializer: Callable[[Any], bytes | None] | None
    """A callable that converts a key to bytes; None: keys are bytes."""
    linger_ms: int
    """How long a batch waits for more records."""
    max_block_ms: int
    """How long send() and the transaction methods may block."""
    max_in_flight_requests_per_connection: int
    """Requests to one broker that may wait for an answer at the same time."""
    max_request_size: int
    """The largest batch, and so the largest record, that is sent."""
    metadata_max_idle_ms: int
    """The metadata of a topic that was not written to for this long is dropped."""
    partitioner_adaptive_partitioning_enable: bool
    """Whether slow brokers get fewer records that have no key."""
    partitioner_availability_timeout_ms: int
    """After this long without progress, a partition gets no records that have no key."""
    partitioner_class: str | Callable[[str, bytes | None, bytes | None, int], int] | None
    """Chooses the partition of a record that names none; None is Kafka's default partitioner."""
    partitioner_ignore_keys: bool
    """Whether to ignore keys when choosing partitions."""
    retries: int
    """How often a failed batch is sent again within delivery.timeout.ms."""
    transaction_timeout_ms: int
    """The coordinator aborts a transaction that takes longer."""
    transaction_two_phase_commit_enable: bool
    """Whether an external coordinator ends transactions."""
    transactional_id: str | None
    """The name of this producer, the same after a restart; needed for transactions."""
    value_serializer: Callable[[Any], bytes | None] | None
    """A callable that converts a value to bytes; None: values are bytes."""


class ConsumerSettings(CommonSettings, Generic[K, V], total=False):
    """Settings of consumers."""

    allow_auto_create_topics: bool
    """Whether a request for a topic may create it."""
    auto_commit_interval_ms: int
    """How often offsets are committed when enable.auto.commit is true."""
    auto_offset_reset: str
    """Where to start without a committed offset: earliest, latest, none (an error),
    by_duration:<time>."""
    check_crcs: bool
    """Whether the checksum of each batch is verified."""
    client_rack: str
    """The rack of this client, so that a near replica can serve it."""
    default_api_timeout_ms: int
    """How long a method may take if it gets no timeout argument."""
    enable_auto_commit: bool
    """Whether poll() commits the offsets of the records that earlier polls returned."""
    exclude_internal_topics: bool
    """Whether patterns skip internal topics."""
    fetch_max_bytes: int
    """The maximum number of bytes in the answer to one fetch."""
    fetch_max_wait_ms: int
    """How long a broker waits for fetch.min.bytes."""
    fetch_min_bytes: int
    """The number of bytes that a broker waits for before it answers a fetch."""
    group_id: str | None
    """The consumer group; needed to subscribe and to commit."""
    group_instance_id: str | None
    """The name of a static member, which may restart without a rebalance."""
    group_protocol: str
    """classic, or consumer: the protocol of KIP-848, in which the broker assigns partitions."""
    group_remote_assignor: str | None
    """The broker's assignor for group.protocol=consumer; None lets the broker choose."""
    heartbeat_interval_ms: int
    """How often a member of a classic group sends a heartbeat."""
    interceptor_classes: Any
    """Objects with on_consume and on_commit."""
    isolation_level: str
    """Whether poll returns records of open and aborted transactions."""
    key_deserializer: Callable[[bytes], K] | Deserializer[K] | None
    """A callable that converts the bytes of a key; None: keys are bytes."""
    max_partition_fetch_bytes: int
    """The maximum number of bytes of one partition in the answer to a fetch."""
    max_poll_interval_ms: int
    """A member that does not poll for this long leaves its group."""
    max_poll_records: int
    """The maximum number of records that one poll returns."""
    partition_assignment_strategy: Any
    """Assignors in order of preference: range, roundrobin, sticky, cooperative-sticky, or objects."""
    session_timeout_ms: int
    """A member that sends no heartbeat for this long is removed from the group."""
    value_deserializer: Callable[[bytes], V] | Deserializer[V] | None
    """A callable that converts the bytes of a value; None: values are bytes."""
