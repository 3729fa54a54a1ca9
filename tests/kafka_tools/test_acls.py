"""acls prints what Kafka's tool prints, on a broker with an authorizer."""

from collections.abc import Iterator

import pytest
from tests.java.conftest import server_class
from tests.kafka_tools.conftest import NAME, Compare

from barnabas.config.keys_security import STANDARD_AUTHORIZER

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def bootstrap(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    running = server_class()(tmp_path_factory.mktemp("acls"), settings)
    running.start()
    yield running.bootstrap
    running.stop()


def test_an_acl_is_added_listed_and_removed(same: Compare) -> None:
    alice = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", NAME)
    assert len(same("acls", "--add", *alice).lines) == 3
    same("acls", "--add", *alice)
    assert len(same("acls", "--list", "--topic", NAME).lines) == 3
    same(
        "acls",
        "--list",
        "--topic",
        NAME,
        "--principal",
        "User:alice",
        "--principal",
        "User:bob",
        ordered=False,
    )
    assert same("acls", "--remove", *alice, "--force").lines == []
    assert same("acls", "--list", "--topic", NAME).lines == []


@pytest.mark.parametrize(
    "arguments",
    [
        "--allow-principal User:a --producer --topic {name} --transactional-id {name}",
        "--allow-principal User:a --consumer --topic {name} --group {name}",
        "--allow-principal User:a --consumer --producer --topic {name} --group {name}",
        "--allow-principal User:* --allow-host 10.0.0.1 --deny-principal User:b --topic {name}",
        "--deny-principal User:b --deny-host 10.0.0.1 --operation describeconfigs --topic {name}",
        "--allow-principal User:a --topic {name} --resource-pattern-type prefixed",
        "--allow-principal User:a --operation CreateTokens --user-principal User:{name}",
        "--allow-principal User:a --delegation-token {name} --operation Describe",
    ],
)
def test_adding_and_removing(same: Compare, arguments: str) -> None:
    words = arguments.split()
    assert same("acls", "--add", *words, ordered=False).code == 0
    for name in ("--topic", "--group", "--transactional-id", "--delegation-token"):
        if name in words:
            for kind in ("literal", "any", "match"):
                same("acls", "--list", name, NAME, "--resource-pattern-type", kind, ordered=False)
    assert same("acls", "--remove", *words, "--force", ordered=False).code == 0
