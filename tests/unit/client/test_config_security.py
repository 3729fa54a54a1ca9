"""Settings of security: Java's names, librdkafka's names, and one sentence for each wrong combination."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import PASSWORD, Authority

from barnabas.client.config import admin_config, producer_config
from barnabas.client.errors import ConfigError
from barnabas.client.keys import ADMIN_KEYS
from barnabas.security.logins import BearerLogin, PasswordLogin, Token, TokenEndpoint, UnsecuredClaims

AUTHORITY = Authority()
SASL = {"security.protocol": "SASL_PLAINTEXT"}
SCRAM = {**SASL, "sasl.mechanism": "SCRAM-SHA-512"}
BEARER = {**SASL, "sasl.mechanism": "OAUTHBEARER"}
PACKAGE = "org.apache.kafka.common.security"


def security(settings: dict[str, Any]) -> Any:
    return admin_config({"bootstrap.servers": "h:1", **settings}).security


def test_without_security_nothing_is_made() -> None:
    assert security({}) is None
    assert admin_config(bootstrap_servers="h:1").connection_settings.security is None


def test_the_names_of_java_and_of_librdkafka_mean_the_same() -> None:
    jaas = f'{PACKAGE}.scram.ScramLoginModule required username="alice" password="secret";'
    wanted = PasswordLogin("SCRAM-SHA-512", "alice", "secret")
    assert security({**SCRAM, "sasl.jaas.config": jaas}).login == wanted
    assert security({**SCRAM, "sasl.username": "alice", "sasl.password": "secret"}).login == wanted
    by_keywords = producer_config(
        bootstrap_servers="h:1",
        security_protocol="sasl_plaintext",
        sasl_mechanisms="scram-sha-512",
        sasl_username="alice",
        sasl_password="secret",
    )
    assert by_keywords.security is not None and by_keywords.security.login == wanted


def test_a_token_in_jaas() -> None:
    jaas = f'{PACKAGE}.scram.ScramLoginModule required username="id" password="hmac" tokenauth="true";'
    assert security({**SCRAM, "sasl.jaas.config": jaas}).login == PasswordLogin(
        "SCRAM-SHA-512", "id", "hmac", is_token=True
    )


def test_oauth_with_an_endpoint() -> None:
    jaas = (
        f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
        ' clientId="me" clientSecret="secret" scope="all" extension_cluster="x";'
    )
    url = "https://login.example/token"
    java = {
        **BEARER,
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.jaas.config": jaas,
        "sasl.login.callback.handler.class": f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler",
    }
    librdkafka = {
        **BEARER,
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "secret",
        "sasl.oauthbearer.scope": "all",
        "sasl.oauthbearer.extensions": "cluster=x",
    }
    for given in (java, librdkafka):
        login = security(given).login
        assert isinstance(login, BearerLogin)
        assert login.source == TokenEndpoint(url, "me", "secret", "all")
        assert "secret" not in f"{login!r} {login.source!r}"
        exchange = login.exchange(lambda _: Token("t", 0))
        assert b"\x01cluster=x\x01" in exchange.first()


def test_an_unsecured_token_for_tests() -> None:
    jaas = f'{PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    source = security({**BEARER, "sasl.jaas.config": jaas}).login.source
    assert source == UnsecuredClaims({"unsecuredLoginStringClaim_sub": "alice"})


def test_tls_from_pem_and_pkcs12(tmp_path: Path) -> None:
    alice = AUTHORITY.client()
    (tmp_path / "trust.p12").write_bytes(AUTHORITY.pkcs12())
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(tmp_path / "trust.p12"),
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": alice.write_pem(tmp_path / "alice.pem"),
        "ssl.keystore.type": "PEM",
    }
    made = security(settings)
    assert made.login is None
    context = made.tls.context()
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    assert made.tls.context() is context


USER = {"sasl.username": "u", "sasl.password": "s3cret"}
PLAIN_MODULE = 'x.PlainLoginModule required username="u" password="s3cret";'


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (SASL, "security.protocol=SASL_PLAINTEXT needs sasl.mechanism"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "GSSAPI, which is not supported"),
        ({**SASL, "sasl.mechanism": "DIGEST"}, "sasl.mechanism cannot be 'DIGEST'"),
        (SCRAM, "needs a username: set it in sasl.jaas.config, or sasl.username and sasl.password"),
        ({**SCRAM, "sasl.username": "u"}, "needs a password"),
        ({**SCRAM, "sasl.jaas.config": 'x.ScramLoginModule required password="s3cret";'}, "needs a username"),
        ({**SCRAM, "sasl.jaas.config": PLAIN_MODULE}, "needs ScramLoginModule"),
        ({**SCRAM, "sasl.jaas.config": PLAIN_MODULE, **USER}, "are both set"),
        ({**SCRAM, "sasl.jaas.config": "s3cret"}, "is missing"),
        ({**SCRAM, **USER, "sasl.username": "a\0b"}, "null characters"),
        (BEARER, "needs a source of tokens"),
        ({**BEARER, "sasl.oauthbearer.token.endpoint.url": "https://x"}, "needs a client id and secret"),
        ({**BEARER, "sasl.oauthbearer.token.endpoint.url": "ftp://x"}, "must begin with https://"),
        ({**BEARER, "sasl.login.callback.handler.class": "com.example.Handler"}, "a Java class"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/no/file"}, "cannot be read"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/file"}, "cannot be read"),
        ({"security.protocol": "SSL", "ssl.key.pem": "s3cret"}, "ssl.keystore.certificate.chain"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "TLSv1.2 and TLSv1.3"),
        ({**SCRAM, **USER, "sasl.password": 5.5}, "the given value"),
    ],
)
def test_a_wrong_combination_is_one_clear_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        security(settings)
    assert sentence in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_credentials_without_a_protocol_are_not_used_and_a_warning_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert security({"sasl.mechanism": "PLAIN", **USER}) is None
    assert "have no effect, because security.protocol is PLAINTEXT" in caplog.text
    assert "s3cret" not in caplog.text


def test_every_setting_that_may_hold_a_secret_is_marked() -> None:
    secret = ("password", "secret", "jaas", ".key", ".pem")
    for name, key in ADMIN_KEYS.items():
        if name.endswith(secret) or "jaas" in name:
            assert key.sensitive, name
