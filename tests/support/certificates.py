"""Certificates for tests: an authority of one's own and what it signs, made in memory or as files.

    authority = Authority()
    server = authority.server()
    client = authority.client("CN=alice,O=Example")
    server.write(directory)  # server.key_and_chain, server.p12, ...

Keys are of the curve P-256: they are made in no time."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
PASSWORD = "store-secret"


@dataclass(frozen=True)
class Issued:
    """A certificate with its key and the certificate of its authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def chain_pem(self) -> str:
        return self.certificate_pem + self.authority.public_bytes(Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    def key_pem(self, password: str | None = None) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)).decode()

    def pkcs12(self, password: str = PASSWORD) -> bytes:
        return pkcs12.serialize_key_and_certificates(
            b"entry", self.key, self.certificate, [self.authority], _encryption(password)
        )

    def write_pem(self, path: Path, password: str | None = None) -> str:
        """One file with key and chain, as ssl.keystore.location wants it with the type PEM."""
        path.touch(0o600)
        path.write_text(self.key_pem(password) + self.chain_pem)
        return str(path)

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> str:
        path.touch(0o600)
        path.write_bytes(self.pkcs12(password))
        return str(path)


class Authority:
    def __init__(self, name: str = "CN=Test Authority") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name.from_rfc4514_string(name)
        self.certificate = (
            _builder(self.name, self.name, self.key.public_key(), (-DAY, 3650 * DAY))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_pem(self, path: Path) -> str:
        path.write_text(self.pem)
        return str(path)

    def pkcs12(self, password: str = PASSWORD) -> bytes:
        """A trust store: a certificate without a key."""
        return pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(self.certificate, b"ca")], _encryption(password)
        )

    def server(self, *names: str) -> Issued:
        """A certificate for localhost and its addresses, or for other DNS names."""
        return self._issue(x509.Name.from_rfc4514_string("CN=localhost,O=Example"), _server_names(names))

    def client(self, subject: str = "CN=alice,O=Example") -> Issued:
        return self._issue(x509.Name.from_rfc4514_string(subject))

    def named(self, name: x509.Name) -> Issued:
        """A client certificate with a subject that no text can say."""
        return self._issue(name)

    def expired_server(self) -> Issued:
        return self._issue(
            x509.Name.from_rfc4514_string("CN=localhost"), _server_names(()), (-10 * DAY, -DAY)
        )

    def expired_client(self, subject: str = "CN=alice,O=Example") -> Issued:
        return self._issue(x509.Name.from_rfc4514_string(subject), None, (-10 * DAY, -DAY))

    def _issue(
        self,
        name: x509.Name,
        server_names: x509.SubjectAlternativeName | None = None,
        valid: tuple[timedelta, timedelta] = (-DAY, 365 * DAY),
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if server_names is None else ExtendedKeyUsageOID.SERVER_AUTH
        # A broker is a client of other brokers too.
        purposes = [purpose] if server_names is None else [purpose, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(name, self.name, key.public_key(), valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        if server_names is not None:
            builder = builder.add_extension(server_names, critical=False)
        return Issued(builder.sign(self.key, hashes.SHA256()), key, self.certificate)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid: tuple[timedelta, timedelta],
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


def _server_names(names: tuple[str, ...]) -> x509.SubjectAlternativeName:
    if names:
        return x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
    return x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _encryption(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())


__all__ = ["PASSWORD", "Authority", "Issued", "NameOID"]
