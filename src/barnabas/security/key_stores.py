"""Key stores and trust stores: from Kafka's `ssl.keystore.*` and `ssl.truststore.*` to PEM text.

PEM (in a file or in the setting itself) and PKCS12. Java's old JKS format is refused with the command that
converts it. A file whose type is left at JKS, Kafka's default, may be a PKCS12 file: Java reads it too."""

import base64
import binascii
import re
from dataclasses import dataclass, field
from pathlib import Path

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
_TYPES = {"PEM": PEM, "PKCS12": PKCS12, "P12": PKCS12, "PFX": PKCS12, "JKS": JKS, "JCEKS": JKS}
# The first bytes of the files that only Java can read.
_JAVA_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
STORE_BYTES_MAX = 16 * 1024 * 1024

_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE = 64


class TlsError(Exception):
    """TLS cannot be set up or used as configured; the text is one sentence for the user, without secrets."""


@dataclass(frozen=True)
class KeyMaterial:
    """A private key and its certificates in PEM form. An encrypted key needs the password."""

    key: str = field(repr=False)
    chain: str
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class KeyStore:
    """What `ssl.keystore.*` says."""

    type: str = JKS
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    certificate_chain: str | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        return self.location is not None or self.key is not None

    def check(self) -> None:
        """TlsError if settings contradict each other; nothing is read yet."""
        kind = _store_type("ssl.keystore.type", self.type)
        if self.key is None and self.certificate_chain is not None:
            raise TlsError("ssl.keystore.certificate.chain is set without ssl.keystore.key: set both.")
        if self.key is not None:
            if kind != PEM:
                raise TlsError("ssl.keystore.key needs ssl.keystore.type=PEM.")
            if self.certificate_chain is None:
                raise TlsError("ssl.keystore.key is set without ssl.keystore.certificate.chain: set both.")
            if self.location is not None:
                raise TlsError("ssl.keystore.key and ssl.keystore.location are both set: set one of them.")
        if kind == PEM and self.password is not None:
            raise TlsError(
                "ssl.keystore.password is not used with ssl.keystore.type=PEM: "
                "the password of an encrypted key belongs in ssl.key.password."
            )
        if kind != PEM and self.location is not None and self.password is None:
            raise TlsError("ssl.keystore.location is set without ssl.keystore.password: set both.")

    def load(self) -> KeyMaterial:
        """The key and the certificates; TlsError if they cannot be read."""
        self.check()
        if self.key is not None:
            return self._from_pem(self.key, self.certificate_chain or "", "ssl.keystore.key")
        if self.location is None:
            raise TlsError("There is no key store: set ssl.keystore.location, or ssl.keystore.key.")
        data = _read_store("ssl.keystore.location", self.location)
        if _store_type("ssl.keystore.type", self.type) == PEM:
            text = _pem_text(data, self.location)
            return self._from_pem(text, text, self.location)
        _refuse_java_store("keystore", self.location, data)
        return _key_of_pkcs12(data, self.location, self.password or "")

    def _from_pem(self, key_text: str, chain_text: str, where: str) -> KeyMaterial:
        keys = [text for label, text in pem_blocks(key_text, where) if label.endswith("PRIVATE KEY")]
        chain = [text for label, text in pem_blocks(chain_text, where) if label == "CERTIFICATE"]
        if len(keys) != 1:
            raise TlsError(f"{where} must have one private key in PEM form; it has {len(keys)}.")
        if not chain:
            raise TlsError(f"{where} has no certificate in PEM form.")
        return KeyMaterial(keys[0], "".join(chain), self.key_password)


@dataclass(frozen=True)
class TrustStore:
    """What `ssl.truststore.*` says."""

    type: str = JKS
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)

    @property
    def is_given(self) -> bool:
        return self.location is not None or self.certificates is not None

    def check(self) -> None:
        """TlsError if settings contradict each other; nothing is read yet."""
        kind = _store_type("ssl.truststore.type", self.type)
        if self.certificates is not None:
            if kind != PEM:
                raise TlsError("ssl.truststore.certificates needs ssl.truststore.type=PEM.")
            if self.location is not None:
                raise TlsError(
                    "ssl.truststore.certificates and ssl.truststore.location are both set: set one of them."
                )
        if kind == PEM and self.password is not None:
            raise TlsError("ssl.truststore.password is not used with ssl.truststore.type=PEM: remove it.")

    def load(self) -> str:
        """The trusted certificates in PEM form; TlsError if there are none or they cannot be read."""
        self.check()
        if self.certificates is not None:
            return _certificates_of_pem(self.certificates, "ssl.truststore.certificates")
        if self.location is None:
            raise TlsError("There is no trust store: set ssl.truststore.location.")
        data = _read_store("ssl.truststore.location", self.location)
        if _store_type("ssl.truststore.type", self.type) == PEM:
            return _certificates_of_pem(_pem_text(data, self.location), self.location)
        _refuse_java_store("truststore", self.location, data)
        return _certificates_of_pkcs12(data, self.location, self.password)


def pem_blocks(text: str, where: str) -> list[tuple[str, str]]:
    """The label and the PEM text of each block. As in Kafka, blanks may replace line ends: a
    properties file has the whole text in one line."""
    blocks = []
    for match in _PEM_BLOCK.finditer(text):
        label, body = match[1], match[2]
        if ":" in body:
            # An encrypted key of the old form: its headers need their own lines.
            blocks.append((label, match[0] + "\n"))
            continue
        packed = "".join(body.split())
        try:
            base64.b64decode(packed, validate=True)
        except binascii.Error:
            raise TlsError(f"{where} has a damaged PEM block {label}: it is not Base64.") from None
        lines = "\n".join(packed[at : at + _LINE] for at in range(0, len(packed), _LINE))
        blocks.append((label, f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"))
    return blocks


def _store_type(key: str, text: str) -> str:
    kind = _TYPES.get(text.upper())
    if kind is None:
        raise TlsError(f"{key} cannot be {text!r}: it must be PEM or PKCS12.")
    return kind


def _read_store(key: str, location: str) -> bytes:
    path = Path(location)
    try:
        if path.stat().st_size > STORE_BYTES_MAX:
            raise TlsError(f"{key} names {location}, which is larger than {STORE_BYTES_MAX} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{key} names {location}, which cannot be read: {error.strerror}.") from None


def _pem_text(data: bytes, location: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TlsError(f"{location} is not a PEM file: for a PKCS12 file set the type to PKCS12.") from None


def _refuse_java_store(kind: str, location: str, data: bytes) -> None:
    if data[:4] in _JAVA_MAGIC:
        target = Path(location).with_suffix(".p12")
        raise TlsError(
            f"{location} has Java's own JKS format: convert it with 'keytool -importkeystore -srckeystore "
            f"{location} -destkeystore {target} -deststoretype PKCS12', "
            f"then set ssl.{kind}.location={target} and ssl.{kind}.type=PKCS12."
        )
    if data.lstrip().startswith(b"-----BEGIN"):
        raise TlsError(f"{location} is a PEM file: set ssl.{kind}.type=PEM.")


def _certificates_of_pem(text: str, where: str) -> str:
    certificates = [block for label, block in pem_blocks(text, where) if label == "CERTIFICATE"]
    if not certificates:
        raise TlsError(f"{where} has no certificate in PEM form.")
    return "".join(certificates)


def _key_of_pkcs12(data: bytes, location: str, password: str) -> KeyMaterial:
    # Imported here: only stores of this type need it, and it takes time.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(data, password.encode())
    except (ValueError, TypeError):
        raise _unreadable("keystore", location) from None
    if store.key is None or store.cert is None:
        raise TlsError(f"{location} has no private key with its certificate.")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [store.cert, *store.additional_certs]
    text = b"".join(entry.certificate.public_bytes(Encoding.PEM) for entry in chain)
    return KeyMaterial(key.decode(), text.decode())


def _certificates_of_pkcs12(data: bytes, location: str, password: str | None) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, TypeError):
        raise _unreadable("truststore", location) from None
    entries = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    if not entries:
        raise TlsError(f"{location} has no certificates.")
    return b"".join(entry.certificate.public_bytes(Encoding.PEM) for entry in entries).decode()


def _unreadable(kind: str, location: str) -> TlsError:
    return TlsError(
        f"{location} cannot be opened: it is not a PKCS12 file, or ssl.{kind}.password is not its password."
    )
