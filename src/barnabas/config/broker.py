"""The table of broker keys, and the names a broker value can go by. Pure values, no I/O."""

import re

from barnabas.config.definition import ConfigKey
from barnabas.config.keys_barnabas import KEYS_BARNABAS
from barnabas.config.keys_cluster import KEYS_CLUSTER
from barnabas.config.keys_groups import KEYS_GROUPS
from barnabas.config.keys_log import KEYS_LOG
from barnabas.config.keys_network import KEYS_NETWORK
from barnabas.config.keys_oauth import KEYS_OAUTH
from barnabas.config.keys_security import KEYS_SECURITY, TLS_KEYS
from barnabas.config.keys_share import KEYS_SHARE
from barnabas.config.keys_tiered import KEYS_TIERED
from barnabas.config.keys_transactions import KEYS_TRANSACTIONS
from barnabas.config.keys_zookeeper import KEYS_ZOOKEEPER

SUBJECTS: dict[str, dict[str, ConfigKey]] = {
    "Topics and the log": KEYS_LOG,
    "Listeners, connections, quotas and metrics": KEYS_NETWORK,
    "Identity, metadata and replication": KEYS_CLUSTER,
    "Groups and offsets": KEYS_GROUPS,
    "Share groups": KEYS_SHARE,
    "Transactions": KEYS_TRANSACTIONS,
    "Security": KEYS_SECURITY,
    "OAuth": KEYS_OAUTH,
    "A protected ZooKeeper": KEYS_ZOOKEEPER,
    "Tiered storage": KEYS_TIERED,
    "Our own": KEYS_BARNABAS,
}

BROKER_KEYS: dict[str, ConfigKey] = {name: key for keys in SUBJECTS.values() for name, key in keys.items()}

_ROLL = ("log.roll.ms", "log.roll.hours")
_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")

_SYNONYMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_JITTER, _JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}

MILLISECONDS_PER_UNIT = {
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
    "log.retention.hours": 3_600_000,
    "log.retention.minutes": 60_000,
}
"""Broker keys whose value has another unit than the topic key that inherits it."""

# Keys whose names this table cannot list: settings of one listener, and settings passed on to plug-ins.
PREFIXES = ("listener.name.", "config.providers.", "rsm.config.", "rlmm.config.")

_LISTENER_KEY = re.compile(r"listener\.name\.[^.]+\.(.+)")
# These are given per mechanism as well: listener.name.<listener>.<mechanism>.<key>.
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)

# These have an effect for one listener.
OF_ONE_LISTENER = frozenset(
    {
        "connections.max.reauth.ms",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.mechanism.inter.broker.protocol",
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.endpoint.identification.algorithm",
        "ssl.protocol",
        "ssl.principal.mapping.rules",
        *TLS_KEYS,
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
    }
)


def base_name(name: str) -> str:
    """The key without its listener.name.<listener>. prefix, if it has one."""
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return name
    base = match[1]
    return next((key for key in _MECHANISM_KEYS if base.endswith("." + key)), base)


def is_secret(name: str) -> bool:
    """Whether nobody may see the value of a broker's setting. One that is in no table may be a secret."""
    key = BROKER_KEYS.get(base_name(name))
    return key is None or key.sensitive


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Every key that can give the value of `name`, most specific first."""
    base = base_name(name)
    return (name, base) if base != name else _SYNONYMS.get(name, (name,))
