"""SCRAM with the example exchanges of the RFCs, with broken messages, and with random users and passwords."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security.scram import (
    BY_CODE,
    BY_NAME,
    MECHANISMS,
    ClientFinal,
    ClientFirst,
    ScramCredential,
    ScramError,
    ScramMechanism,
    ServerFinal,
    ServerFirst,
    client_proof,
    credential_of_salted,
    escape_user,
    is_proven,
    is_servers,
    make_credential,
    new_nonce,
    salted_password,
    server_signature,
    signed_text,
    unescape_user,
)

# The example of RFC 7677, section 3: user "user", password "pencil".
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
# The example of RFC 5802, section 5, is for SHA-1, which no Kafka has. It checks the rest of the algorithm.
SHA_1 = ScramMechanism("SCRAM-SHA-1", "sha1", 0)
SHA_1_EXCHANGE = (
    b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)


@pytest.mark.parametrize(
    ("mechanism", "exchange"),
    [
        (ScramMechanism.SHA_256, (CLIENT_FIRST, SERVER_FIRST, CLIENT_FINAL, SERVER_FINAL)),
        (SHA_1, SHA_1_EXCHANGE),
    ],
)
def test_the_examples_of_the_rfcs(mechanism: ScramMechanism, exchange: tuple[bytes, ...]) -> None:
    first = ClientFirst.parse(exchange[0])
    server_first = ServerFirst.parse(exchange[1])
    final = ClientFinal.parse(exchange[2])
    assert (first.user, first.authorization_id, first.header) == ("user", "", "n,,")
    assert server_first.nonce.startswith(first.nonce)
    assert final.channel_binding == b"n,,"

    signed = signed_text(first, server_first, final)
    salted = salted_password(mechanism, "pencil", server_first.salt, server_first.iterations)
    assert client_proof(mechanism, salted, signed) == final.proof

    credential = make_credential(mechanism, "pencil", server_first.iterations, server_first.salt)
    assert is_proven(mechanism, credential, signed, final.proof)
    signature = server_signature(mechanism, credential.server_key, signed)
    assert bytes(ServerFinal(signature)) == exchange[3]
    assert is_servers(mechanism, salted, signed, ServerFinal.parse(exchange[3]).signature)

    assert bytes(ClientFirst.make("user", first.nonce)) == exchange[0]
    assert bytes(ServerFirst.make(server_first.nonce, server_first.salt, 4096)) == exchange[1]
    assert bytes(ClientFinal.make("n,,", final.nonce, final.proof)) == exchange[2]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=20, deadline=None)
@given(
    user=st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1),
    password=st.text(min_size=1).filter(lambda text: not any(0xD800 <= ord(char) < 0xE000 for char in text)),
    is_right=st.booleans(),
)
def test_only_the_right_password_is_proven(
    mechanism: ScramMechanism, user: str, password: str, is_right: bool
) -> None:
    credential = make_credential(mechanism, password, 4096)
    first = ClientFirst.parse(bytes(ClientFirst.make(user, new_nonce())))
    assert first.user == user
    answer = ServerFirst.make(first.nonce + new_nonce(), credential.salt, credential.iterations)
    server_first = ServerFirst.parse(bytes(answer))
    assert server_first == answer

    shown = password if is_right else password + "x"
    salted = salted_password(mechanism, shown, server_first.salt, server_first.iterations)
    unsigned = ClientFinal.make(first.header, server_first.nonce)
    proof = client_proof(mechanism, salted, signed_text(first, server_first, unsigned))
    final = ClientFinal.parse(bytes(ClientFinal.make(first.header, server_first.nonce, proof)))
    signed = signed_text(first, server_first, final)
    assert is_proven(mechanism, credential, signed, final.proof) is is_right
    signature = server_signature(mechanism, credential.server_key, signed)
    assert is_servers(mechanism, salted, signed, signature) is is_right


@given(st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1))
def test_user_names_come_back_from_their_escaped_form(user: str) -> None:
    escaped = escape_user(user)
    assert "," not in escaped
    assert unescape_user(escaped) == user


@given(st.binary(max_size=200) | st.text("nyap=,cr2C3Ds+/i1 mv").map(str.encode))
def test_no_bytes_cause_another_error(message: bytes) -> None:
    for kind in (ClientFirst, ServerFirst, ClientFinal, ServerFinal):
        try:
            kind.parse(message)
        except ScramError as error:
            assert len(str(error)) < 100


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,n=,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=us=2cer,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a\x00c",
        b"n,,r=abc,n=user",
        b"n,user,n=user,r=abc",
        b"n,,m=must,n=user,r=abc",
        b"n,,n=user,r=abc,m=must",
        b"n,,n=user,r=abc,tokenauth",
        b"n,,n=user,r=abc,tokenauth=",
        b"n,,n=user,r=abc,1=2",
        b"p=tls-unique,,n=user,r=abc",
        "n,,n=bär,r=abc".encode(),
        b"n,,n=user,r=abc" + b",a=b" * 40,
    ],
)
def test_broken_first_messages(message: bytes) -> None:
    with pytest.raises(ScramError):
        ClientFirst.parse(message)


@pytest.mark.parametrize(
    "message",
    [
        b"c=biws,r=abc",
        b"r=abc,c=biws,p=AAAA",
        b"c=biws,r=abc,p=A",
        b"c=bi ws,r=abc,p=AAAA",
        b"c=biws,r=abc,x,p=AAAA",
    ],
)
def test_broken_final_messages(message: bytes) -> None:
    with pytest.raises(ScramError):
        ClientFinal.parse(message)


@pytest.mark.parametrize("iterations", [b"0", b"-1", b"04096", b"4096x", b"9999999999", b""])
def test_broken_iteration_counts(iterations: bytes) -> None:
    with pytest.raises(ScramError):
        ServerFirst.parse(b"r=abc,s=AAAA,i=" + iterations)


def test_extensions_and_authorization_ids() -> None:
    first = ClientFirst.parse(b"n,a=some=2Cone,n=a=3Db,r=abc,tokenauth=true,x=y=z")
    assert first.is_token
    assert first.extensions == {"tokenauth": "true", "x": "y=z"}
    assert (first.user, first.authorization_id) == ("a=b", "some,one")
    assert first.header == "n,a=some=2Cone,"
    made = ClientFirst.make("id", "abc", {"tokenauth": "true"})
    assert bytes(made) == b"n,,n=id,r=abc,tokenauth=true"
    assert not ClientFirst.parse(b"n,,n=a,r=abc,tokenauth=no").is_token


def test_a_proof_of_another_length_is_wrong() -> None:
    credential = make_credential(ScramMechanism.SHA_256, "secret", 4096)
    for proof in (b"", b"x" * 31, b"x" * 33, b"x" * 64):
        assert not is_proven(ScramMechanism.SHA_256, credential, b"signed", proof)


def test_secrets_are_not_in_the_representation() -> None:
    credential = make_credential(ScramMechanism.SHA_512, "secret", 4096)
    assert repr(credential) == "ScramCredential(iterations=4096)"


def test_a_password_that_the_client_salted() -> None:
    mechanism = ScramMechanism.SHA_512
    salted = salted_password(mechanism, "secret", b"salt", 5000)
    expected = make_credential(mechanism, "secret", 5000, b"salt")
    assert credential_of_salted(mechanism, salted, b"salt", 5000) == expected
    assert isinstance(expected, ScramCredential)
    assert len(expected.stored_key) == mechanism.key_bytes == 64


def test_salts_and_nonces_differ() -> None:
    first, second = (make_credential(ScramMechanism.SHA_256, "secret", 4096) for _ in range(2))
    assert first.salt != second.salt
    assert first.stored_key != second.stored_key
    assert new_nonce() != new_nonce()


def test_an_empty_password_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        make_credential(ScramMechanism.SHA_256, "", 4096)


def test_names_and_codes() -> None:
    assert BY_NAME["SCRAM-SHA-256"] is BY_CODE[1] is ScramMechanism.SHA_256
    assert BY_NAME["SCRAM-SHA-512"] is BY_CODE[2] is ScramMechanism.SHA_512
    assert {(m.iterations_min, m.iterations_max) for m in MECHANISMS} == {(4096, 16384)}
