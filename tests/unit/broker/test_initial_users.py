"""Users that exist from the first start on."""

from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.security import scram
from barnabas.security.scram import ClientFirst, ServerFirst
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
}


def challenge(broker: VisibleBroker, user: str, mechanism: str) -> ServerFirst:
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(17, 1, SaslHandshakeRequest(mechanism=mechanism))
        first = ClientFirst.make(user, scram.new_nonce())
        answer = client.call(36, 2, SaslAuthenticateRequest(auth_bytes=bytes(first)))
        return ServerFirst.parse(answer.auth_bytes)


@pytest.mark.parametrize("mechanism", scram.BY_NAME)
def test_a_first_user_looks_like_one_that_does_not_exist(tmp_path: Path, mechanism: str) -> None:
    users = tmp_path / "users.properties"
    users.touch(0o600)
    users.write_text("first=her-password\n")
    overrides = {**LISTENER, "barnabas.initial.users.file": str(users)}
    with visible_broker(tmp_path / "data", overrides) as broker:
        first, nobody = (challenge(broker, user, mechanism) for user in ("first", "nobody"))
    assert first.iterations == nobody.iterations
    assert first.salt.isalnum() and nobody.salt.isalnum()
    assert abs(len(first.salt) - len(nobody.salt)) <= 3
