"""TLS as Kafka's `ssl.*` keys describe it: the settings, and the contexts that Python's `ssl` needs.

For brokers and clients. Nothing here opens a socket. Secrets are in no repr and in no error."""

import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.security.key_stores import JKS, KeyMaterial, KeyStore, TlsError, TrustStore
from barnabas.security.subjects import parse_rules, principal_of, subject_of

__all__ = [
    "KeyStore",
    "TlsError",
    "TlsSettings",
    "TrustStore",
    "client_context",
    "load_server",
    "principal_of",
    "server_context",
    "subject_of",
]

# Returns the text of a key, such as "ssl.keystore.location", or None if it is not set.
GetText: TypeAlias = Callable[[str], str | None]

TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
_VERSIONS = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_TLS_1_3_SUITES = frozenset(
    ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")
)


@dataclass(frozen=True)
class TlsSettings:
    key_store: KeyStore = field(default_factory=KeyStore)
    trust_store: TrustStore = field(default_factory=TrustStore)
    enabled_protocols: tuple[str, ...] = (TLS_1_2, TLS_1_3)
    protocol: str = TLS_1_3
    cipher_suites: tuple[str, ...] = ()
    client_auth: str = "none"
    endpoint_identification_algorithm: str = "https"
    principal_mapping_rules: str = "DEFAULT"

    @classmethod
    def from_config(cls, get: GetText) -> "TlsSettings":
        """The settings that Kafka's keys give; TlsError if they contradict each other. Reads no file."""
        settings = cls(
            key_store=KeyStore(
                type=get("ssl.keystore.type") or JKS,
                location=get("ssl.keystore.location") or None,
                password=get("ssl.keystore.password"),
                key_password=get("ssl.key.password"),
                key=get("ssl.keystore.key") or None,
                certificate_chain=get("ssl.keystore.certificate.chain") or None,
            ),
            trust_store=TrustStore(
                type=get("ssl.truststore.type") or JKS,
                location=get("ssl.truststore.location") or None,
                password=get("ssl.truststore.password"),
                certificates=get("ssl.truststore.certificates") or None,
            ),
            enabled_protocols=_items(get("ssl.enabled.protocols")) or (TLS_1_2, TLS_1_3),
            protocol=get("ssl.protocol") or TLS_1_3,
            cipher_suites=_items(get("ssl.cipher.suites")),
            client_auth=(get("ssl.client.auth") or "none").lower(),
            endpoint_identification_algorithm=_or_default(
                get("ssl.endpoint.identification.algorithm"), "https"
            ).lower(),
            principal_mapping_rules=get("ssl.principal.mapping.rules") or "DEFAULT",
        )
        settings.check()
        return settings

    def check(self) -> None:
        """TlsError if a value is not one of those that are possible, or two contradict each other."""
        self.key_store.check()
        self.trust_store.check()
        for version in self.enabled_protocols:
            if version not in _VERSIONS:
                raise TlsError(
                    f"ssl.enabled.protocols has {version!r}: only TLSv1.2 and TLSv1.3 are safe, use these."
                )
        if self.protocol not in (*_VERSIONS, "TLS"):
            raise TlsError(f"ssl.protocol cannot be {self.protocol!r}: it must be TLSv1.2 or TLSv1.3.")
        if self.client_auth not in _CLIENT_AUTH:
            raise TlsError(
                f"ssl.client.auth cannot be {self.client_auth!r}: it must be required, requested or none."
            )
        if self.endpoint_identification_algorithm not in ("https", ""):
            raise TlsError(
                "ssl.endpoint.identification.algorithm cannot be "
                f"{self.endpoint_identification_algorithm!r}: it must be https, or empty to check no names."
            )
        parse_rules(self.principal_mapping_rules)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a context is made from."""
        locations = (self.key_store.location, self.trust_store.location)
        return tuple(location for location in locations if location is not None)


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener; TlsError if a store cannot be used."""
    return load_server(settings)[0]


def load_server(settings: TlsSettings) -> tuple[ssl.SSLContext, str]:
    """The context of a listener, and the certificates (PEM) that it shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _apply(context, settings, list(settings.enabled_protocols))
    # A peer that asks for new keys again and again would cost a handshake each time.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not settings.key_store.is_given:
        raise TlsError(
            "A TLS listener needs a key and a certificate: set ssl.keystore.location, or ssl.keystore.key."
        )
    chain = _load_key(context, settings.key_store)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        if not settings.trust_store.is_given:
            # The certificates of the system are no answer: they would let in everybody who can buy one.
            raise TlsError(
                f"ssl.client.auth={settings.client_auth} needs the certificates that clients may have: "
                "set ssl.truststore.location."
            )
        _load_trust(context, settings.trust_store)
    return context, chain


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a client; TlsError if a store cannot be used.

    Without a trust store the certificates of the system are trusted, as Java trusts its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    versions = [
        version
        for version in settings.enabled_protocols
        # As in Kafka: a client with ssl.protocol=TLSv1.2 does not use TLSv1.3.
        if not (settings.protocol == TLS_1_2 and version == TLS_1_3)
    ]
    _apply(context, settings, versions)
    context.check_hostname = settings.endpoint_identification_algorithm == "https"
    context.verify_mode = ssl.CERT_REQUIRED
    if settings.trust_store.is_given:
        _load_trust(context, settings.trust_store)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if settings.key_store.is_given:
        _load_key(context, settings.key_store)
    return context


def _apply(context: ssl.SSLContext, settings: TlsSettings, versions: list[str]) -> None:
    """Versions and cipher suites."""
    suites = settings.cipher_suites
    if suites:
        # A version without a suite in the list cannot be used.
        has_new, has_old = bool(_TLS_1_3_SUITES & set(suites)), bool(set(suites) - _TLS_1_3_SUITES)
        versions = [version for version in versions if (has_new if version == TLS_1_3 else has_old)]
    if not versions:
        raise TlsError("ssl.enabled.protocols, ssl.protocol and ssl.cipher.suites leave no TLS version.")
    context.minimum_version = min(_VERSIONS[version] for version in versions)
    context.maximum_version = max(_VERSIONS[version] for version in versions)
    if suites:
        _set_suites(context, suites, versions)


def _set_suites(context: ssl.SSLContext, suites: tuple[str, ...], versions: list[str]) -> None:
    new = [suite for suite in suites if suite in _TLS_1_3_SUITES]
    if TLS_1_3 in versions and set(new) != _TLS_1_3_SUITES:
        set_new: Callable[[str], None] | None = getattr(context, "set_ciphersuites", None)
        if set_new is None:
            raise TlsError(
                "This Python cannot choose among the cipher suites of TLSv1.3: put all three into "
                f"ssl.cipher.suites ({', '.join(sorted(_TLS_1_3_SUITES))}), "
                "or set ssl.enabled.protocols=TLSv1.2."
            )
        set_new(":".join(new))
    old = [_openssl_name(suite) for suite in suites if suite not in _TLS_1_3_SUITES]
    if not old:
        return
    try:
        context.set_ciphers(":".join(old))
    except ssl.SSLError:
        raise TlsError(f"ssl.cipher.suites has no suite that is known: {', '.join(suites)}.") from None
    known = {cipher["name"] for cipher in context.get_ciphers()}
    for suite in old:
        if suite not in known:
            raise TlsError(
                f"ssl.cipher.suites has {suite}, which is not known or not safe enough: remove it."
            )


def _openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, as Java has it, is ECDHE-RSA-AES128-GCM-SHA256 for OpenSSL."""
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return suite
    cipher = re.sub(r"AES_([0-9]+)_", r"AES\1_", cipher)
    cipher = cipher.replace("_CBC", "").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = cipher.replace("CCM_8", "CCM8")
    name = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return name.replace("_", "-")


def _load_key(context: ssl.SSLContext, store: KeyStore) -> str:
    material = store.load()
    where = store.location or "ssl.keystore.key"
    try:
        _load_chain(context, material)
    except ssl.SSLError as error:
        reason = error.reason or ""
        if "KEY_VALUES_MISMATCH" in reason:
            raise TlsError(f"The private key of {where} does not belong to its first certificate.") from None
        if material.password is None and "ENCRYPTED" in material.key:
            raise TlsError(f"The private key of {where} is encrypted: set ssl.key.password.") from None
        raise TlsError(
            f"The private key or the certificates of {where} cannot be used ({_reason(error)}): "
            "they are damaged, too weak, or ssl.key.password is wrong."
        ) from None
    return material.chain


def _load_chain(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """OpenSSL reads the key from a file: give it one that exists only in memory and only for this process."""
    descriptor = os.memfd_create("barnabas-key", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(f"{material.key}{material.chain}".encode())
        # A function, also without a password: OpenSSL would ask for one on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: material.password or "")
    finally:
        os.close(descriptor)


def _load_trust(context: ssl.SSLContext, store: TrustStore) -> None:
    where = store.location or "ssl.truststore.certificates"
    try:
        context.load_verify_locations(cadata=store.load())
    except ssl.SSLError as error:
        raise TlsError(f"The certificates of {where} cannot be used ({_reason(error)}).") from None
    # As in Java, a certificate in the trust store is trusted, also one that another authority has signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "unknown reason").lower().replace("_", " ")


def _items(text: str | None) -> tuple[str, ...]:
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def _or_default(text: str | None, default: str) -> str:
    return default if text is None else text
