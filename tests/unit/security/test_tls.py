"""TLS settings and contexts: every kind of store, versions, cipher suites, names, client certificates."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.certificates import PASSWORD, Authority, Issued
from tests.support.handshakes import shake_hands

from barnabas.security.key_stores import KeyStore
from barnabas.security.tls import TlsError, TlsSettings, client_context, server_context


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def server(authority: Authority) -> Issued:
    return authority.server()


def settings(values: Mapping[str, str]) -> TlsSettings:
    return TlsSettings.from_config(values.get)


def pem_key(issued: Issued) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem(),
        "ssl.keystore.certificate.chain": issued.chain_pem,
    }


def pem_trust(authority: Authority) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.pem}


def test_pem_in_the_settings_themselves(authority: Authority, server: Issued) -> None:
    server_end, client_end = shake_hands(
        server_context(settings(pem_key(server))), client_context(settings(pem_trust(authority)))
    )
    assert server_end.version() == client_end.version() == "TLSv1.3"
    assert server_end.getpeercert(binary_form=True) is None


def test_pem_in_one_line(authority: Authority, server: Issued) -> None:
    """A properties file has no line ends inside of a value."""
    in_lines = {**pem_key(server), **pem_trust(authority)}
    in_one = {key: value.replace("\n", " ") for key, value in in_lines.items()}
    shake_hands(server_context(settings(in_one)), client_context(settings(in_one)))


def test_pem_files_with_an_encrypted_key(authority: Authority, server: Issued, tmp_path: Path) -> None:
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": server.write_pem(tmp_path / "server.pem", "key-secret"),
        "ssl.key.password": "key-secret",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write_pem(tmp_path / "ca.pem"),
    }
    shake_hands(server_context(settings(stores)), client_context(settings(stores)))
    assert settings(stores).files == (stores["ssl.keystore.location"], stores["ssl.truststore.location"])
    for password in ({}, {"ssl.key.password": "wrong"}):
        wrong = {key: value for key, value in stores.items() if key != "ssl.key.password"} | password
        with pytest.raises(TlsError, match=r"ssl\.key\.password"):
            server_context(settings(wrong))


@pytest.mark.parametrize("kind", ["PKCS12", "pkcs12", "JKS", None])
def test_pkcs12_files(authority: Authority, server: Issued, tmp_path: Path, kind: str | None) -> None:
    """As in Java, a PKCS12 file may be given as JKS, which is the default."""
    trust = tmp_path / "trust.p12"
    trust.write_bytes(authority.pkcs12())
    stores = {
        "ssl.keystore.location": server.write_pkcs12(tmp_path / "server.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
    }
    if kind is not None:
        stores |= {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
    shake_hands(server_context(settings(stores)), client_context(settings(stores)))
    for store in ("keystore", "truststore"):
        wrong = {**stores, f"ssl.{store}.password": "not-it"}
        with pytest.raises(TlsError, match=rf"ssl\.{store}\.password is not its password"):
            server_context(settings({**wrong, "ssl.client.auth": "required"}))


def test_jks_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "broker.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02rest")
    jks = {"ssl.keystore.location": str(path), "ssl.keystore.password": "secret-1"}
    with pytest.raises(TlsError) as caught:
        server_context(settings(jks))
    target = tmp_path / "broker.p12"
    assert f"keytool -importkeystore -srckeystore {path} -destkeystore {target} -deststoretype PKCS12" in str(
        caught.value
    )
    assert "secret-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "set ssl.keystore.location, or ssl.keystore.key"),
        ({"ssl.keystore.location": "/none/x.p12"}, "without ssl.keystore.password"),
        ({"ssl.keystore.location": "/none/x.p12", "ssl.keystore.password": "x"}, "cannot be read"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"}, "without ssl.keystore.certificate.chain"),
        ({"ssl.keystore.certificate.chain": "x"}, "without ssl.keystore.key"),
        ({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "x"}, "needs ssl.keystore.type=PEM"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.password": "x"}, "belongs in ssl.key.password"),
        ({"ssl.keystore.type": "BKS"}, "must be PEM or PKCS12"),
        ({"ssl.truststore.certificates": "x"}, "needs ssl.truststore.type=PEM"),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.password": "x"}, "remove it"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "only TLSv1.2 and TLSv1.3 are safe"),
        ({"ssl.protocol": "SSLv3"}, "it must be TLSv1.2 or TLSv1.3"),
        ({"ssl.client.auth": "maybe"}, "required, requested or none"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "must be https, or empty"),
        ({"ssl.principal.mapping.rules": "RULE:^CN=(.*"}, "malformed rule"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(TlsError) as caught:
        server_context(settings(values))
    assert sentence in str(caught.value)


def test_a_pem_file_given_as_another_type(server: Issued, tmp_path: Path) -> None:
    location = server.write_pem(tmp_path / "server.pem")
    with pytest.raises(TlsError, match=r"set ssl\.keystore\.type=PEM"):
        server_context(settings({"ssl.keystore.location": location, "ssl.keystore.password": "x"}))


@pytest.mark.parametrize("text", ["", "no pem", "-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----"])
def test_damaged_pem(server: Issued, text: str) -> None:
    with pytest.raises(TlsError):
        server_context(settings({**pem_key(server), "ssl.keystore.certificate.chain": text or " "}))


def test_a_key_of_another_certificate(authority: Authority, server: Issued) -> None:
    other = {**pem_key(server), "ssl.keystore.certificate.chain": authority.server().chain_pem}
    with pytest.raises(TlsError, match="does not belong to its first certificate"):
        server_context(settings(other))


def test_no_secret_in_a_repr(server: Issued) -> None:
    secrets = {**pem_key(server), "ssl.key.password": "hidden-1"}
    shown = repr(settings(secrets)) + repr(KeyStore(password="hidden-2"))
    assert "hidden" not in shown
    assert "PRIVATE KEY" not in shown
    assert "PRIVATE KEY" not in repr(settings(secrets).key_store.load())


# ---- versions and cipher suites


def test_versions(authority: Authority, server: Issued) -> None:
    trust = pem_trust(authority)
    old = {"ssl.enabled.protocols": "TLSv1.2"}
    both = server_context(settings(pem_key(server)))
    only_old = server_context(settings({**pem_key(server), **old}))
    assert shake_hands(both, client_context(settings({**trust, **old})))[0].version() == "TLSv1.2"
    assert shake_hands(only_old, client_context(settings(trust)))[0].version() == "TLSv1.2"
    # As Kafka documents ssl.protocol: such a client does not use TLSv1.3.
    assert shake_hands(both, client_context(settings({**trust, "ssl.protocol": "TLSv1.2"})))[0].version() == (
        "TLSv1.2"
    )
    with pytest.raises(ssl.SSLError):
        shake_hands(only_old, client_context(settings({**trust, "ssl.enabled.protocols": "TLSv1.3"})))


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ],
)
def test_cipher_suites(authority: Authority, server: Issued, suite: str, name: str) -> None:
    context = server_context(settings({**pem_key(server), "ssl.cipher.suites": suite}))
    end, _ = shake_hands(context, client_context(settings(pem_trust(authority))))
    # None of the list is a suite of TLS 1.3, so that version is not offered.
    cipher = end.cipher()
    assert end.version() == "TLSv1.2"
    assert cipher is not None
    assert cipher[0] == name


@pytest.mark.parametrize(
    ("suites", "sentence"),
    [
        ("TLS_RSA_WITH_NOTHING", "known"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_NOTHING", "RSA|NOTHING"),
    ],
)
def test_unknown_cipher_suites(server: Issued, suites: str, sentence: str) -> None:
    with pytest.raises(TlsError, match=sentence):
        server_context(settings({**pem_key(server), "ssl.cipher.suites": suites}))


@pytest.mark.skipif(hasattr(ssl.SSLContext, "set_ciphersuites"), reason="this Python can choose among them")
def test_some_of_the_suites_of_tls_1_3_cannot_be_chosen(server: Issued) -> None:
    """A suite that was not listed must not be used, so the broker does not start."""
    with pytest.raises(TlsError, match="all three"):
        server_context(settings({**pem_key(server), "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}))


# ---- whom to trust


def test_a_name_that_is_not_in_the_certificate(authority: Authority) -> None:
    context = server_context(settings(pem_key(authority.server("broker.example"))))
    client = settings(pem_trust(authority))
    shake_hands(context, client_context(client), "broker.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(context, client_context(client), "localhost")
    unnamed = settings({**pem_trust(authority), "ssl.endpoint.identification.algorithm": ""})
    shake_hands(context, client_context(unnamed), "localhost")


def test_a_foreign_authority_and_an_expired_certificate(authority: Authority, server: Issued) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(
            server_context(settings(pem_key(server))), client_context(settings(pem_trust(Authority())))
        )
    expired = server_context(settings(pem_key(authority.expired_server())))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(expired, client_context(settings(pem_trust(authority))))
    # Also without a check of names; there is no setting that trusts everybody.
    unnamed = {**pem_trust(Authority()), "ssl.endpoint.identification.algorithm": ""}
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server_context(settings(pem_key(server))), client_context(settings(unnamed)))


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_certificates_of_clients(authority: Authority, server: Issued, auth: str) -> None:
    context = server_context(settings({**pem_key(server), **pem_trust(authority), "ssl.client.auth": auth}))
    alice = authority.client()
    end, _ = shake_hands(context, client_context(settings({**pem_trust(authority), **pem_key(alice)})))
    assert end.getpeercert(binary_form=True) == alice.der
    for bad in (Authority().client(), authority.expired_client()):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(context, client_context(settings({**pem_trust(authority), **pem_key(bad)})))
    nobody = client_context(settings(pem_trust(authority)))
    if auth == "required":
        with pytest.raises(ssl.SSLError):
            shake_hands(context, nobody)
    else:
        assert shake_hands(context, nobody)[0].getpeercert(binary_form=True) is None


def test_certificates_of_clients_need_a_trust_store(server: Issued) -> None:
    with pytest.raises(TlsError, match=r"set ssl\.truststore\.location"):
        server_context(settings({**pem_key(server), "ssl.client.auth": "requested"}))


def test_a_trusted_certificate_of_its_own(authority: Authority, server: Issued) -> None:
    """As in Java, a certificate in the trust store is trusted without the authority that signed it."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": server.certificate_pem}
    shake_hands(server_context(settings(pem_key(server))), client_context(settings(trust)))
