"""The client's side of SASL, against the examples of the RFCs and against hostile servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security import scram
from barnabas.security.sasl.client import OAuthBearerExchange, PlainExchange, SaslError, ScramExchange

SHA_256 = scram.ScramMechanism.SHA_256


def test_plain() -> None:
    exchange = PlainExchange("tim", "tanstaaftanstaaf")
    assert exchange.first() == b"\0tim\0tanstaaftanstaaf"
    assert exchange.answer(b"") is None


def test_scram_as_in_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scram, "new_nonce", lambda: "rOprNGfwEbeRWgbNEkqO")
    exchange = ScramExchange(SHA_256, "user", "pencil")
    assert exchange.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    server_first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert exchange.answer(server_first) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_names_are_escaped_and_tokens_are_marked() -> None:
    first = ScramExchange(SHA_256, "a=b,c", "p", {"tokenauth": "true"}).first().decode()
    assert first.startswith("n,,n=a=3Db=2Cc,r=")
    assert first.endswith(",tokenauth=true")


@pytest.mark.parametrize(
    ("challenge", "sentence"),
    [
        ("r={},s=c2FsdA==,i=4096", "does not continue ours"),
        ("r=other,s=c2FsdA==,i=4096", "does not continue ours"),
        ("r={}x,s=c2FsdA==,i=4095", "asks for 4095 iterations"),
        ("r={}x,s=c2FsdA==,i=999999999", "asks for 999999999 iterations"),
        ("r={}x,s=,i=4096", "salt"),
        ("r={}x,s=" + "QUFB" * 400 + ",i=4096", "salt"),
        ("m=now,r={}x,s=c2FsdA==,i=4096", "not supported"),
        ("", "broken"),
    ],
)
def test_a_server_that_breaks_the_rules_is_refused(challenge: str, sentence: str) -> None:
    exchange = ScramExchange(SHA_256, "u", "p")
    nonce = exchange.first().decode().partition("r=")[2]
    with pytest.raises(SaslError, match=sentence):
        exchange.answer(challenge.replace("{}", nonce).encode())


@pytest.mark.parametrize("final", [b"v=AAAA", b"v=", b"e=invalid-proof", b"", b"v=" + b"QUFB" * 11])
def test_a_server_without_the_right_signature_is_refused(final: bytes) -> None:
    exchange = ScramExchange(SHA_256, "u", "p")
    nonce = exchange.first().decode().partition("r=")[2]
    assert exchange.answer(f"r={nonce}x,s=c2FsdA==,i=4096".encode()) is not None
    with pytest.raises(SaslError):
        exchange.answer(final)


@given(st.binary(max_size=200))
def test_any_challenge_is_an_answer_or_an_error(challenge: bytes) -> None:
    for exchange in (ScramExchange(SHA_256, "u", "p"), OAuthBearerExchange("t"), PlainExchange("u", "p")):
        exchange.first()
        try:
            exchange.answer(challenge)
        except SaslError:
            continue


def test_a_token_and_its_refusal() -> None:
    exchange = OAuthBearerExchange("t0ken", {"a": "b"})
    assert exchange.first() == b"n,,\x01auth=Bearer t0ken\x01a=b\x01\x01"
    assert exchange.answer(b"") is None
    assert exchange.answer(b'{"status":"invalid_token"}') == b"\x01"
    assert exchange.refusal == "invalid_token"
    with pytest.raises(SaslError):
        exchange.answer(b"more")
