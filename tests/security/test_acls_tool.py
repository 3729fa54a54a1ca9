"""`barnabas acls` against a broker with an authorizer: what it changes, and what it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.security.users import GuardedBroker, guarded_broker

from barnabas.cli.main import main
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType

Tool = Callable[..., str]
TOPIC = ResourceType.TOPIC


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    settings = {"super.users": "User:ANONYMOUS"}
    with guarded_broker(tmp_path_factory.mktemp("acls"), settings) as broker:
        yield broker


@pytest.fixture
def tool(broker: GuardedBroker, capsys: pytest.CaptureFixture[str]) -> Tool:
    """tool("--list") -> what it prints; an error is its text."""
    broker.set_acls([])

    def tool(*arguments: str, code: int = 0) -> str:
        try:
            exit_code = main(["acls", "--bootstrap-server", f"127.0.0.1:{broker.port}", *arguments])
        except SystemExit as stop:
            exit_code = int(stop.code or 0)
        printed = capsys.readouterr()
        assert exit_code == code, printed
        return printed.err if code else printed.out

    return tool


def acls_of(broker: GuardedBroker) -> set[Acl]:
    return broker.visible.look(lambda broker: set(broker.image.acls.values()))


def of_alice(operation: Operation, kind: ResourceType, name: str) -> Acl:
    return Acl(kind, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW)


def test_an_acl_is_added_listed_and_removed(broker: GuardedBroker, tool: Tool) -> None:
    alice = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    entry = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
    pattern = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"
    assert tool("--add", *alice) == f"Adding ACLs for resource `{pattern}`: \n \t{entry}\n\n"
    assert acls_of(broker) == {of_alice(Operation.READ, TOPIC, "orders")}
    assert tool("--add", *alice) == f"Acl (pattern={pattern}, entry={entry}) already exists.\n"
    assert tool("--list") == f"Current ACLs for resource `{pattern}`:\n\t{entry}\n\n"
    assert tool("--list", "--topic", "orders") == tool("--list")
    assert tool("--list", "--topic", "payments") == ""
    assert tool("--list", "--principal", "User:bob") == "ACLs for principal `User:bob`\n"
    assert entry in tool("--list", "--principal", "User:alice")
    assert tool("--remove", *alice, "--force") == ""
    assert acls_of(broker) == set()


def test_removal_is_confirmed(broker: GuardedBroker, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("--add", "--allow-principal", "User:alice", "--topic", "orders")
    monkeypatch.setattr("builtins.input", lambda: "n")
    pattern = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=ANY)"
    every = ("--remove", "--topic", "orders", "--resource-pattern-type", "any")
    question = f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)\n"
    assert tool(*every) == question
    assert len(acls_of(broker)) == 1
    monkeypatch.setattr("builtins.input", lambda: "Y")
    tool(*every)
    assert not acls_of(broker)


def test_roles(broker: GuardedBroker, tool: Tool) -> None:
    names = ("--topic", "orders", "--group", "readers", "--transactional-id", "txn")
    tool("--add", "--allow-principal", "User:alice", "--producer", "--idempotent", "--consumer", *names)
    assert acls_of(broker) == {
        *(
            of_alice(operation, TOPIC, "orders")
            for operation in (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
        ),
        of_alice(Operation.READ, ResourceType.GROUP, "readers"),
        of_alice(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "txn"),
        of_alice(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "txn"),
        of_alice(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster"),
    }


def test_hosts_prefixes_and_denials(broker: GuardedBroker, tool: Tool) -> None:
    tool(
        *("--add", "--allow-principal", "User:*", "--allow-host", "10.0.0.1", "--deny-principal", "User:eve"),
        *("--deny-host", "10.0.0.2", "--operation", "describeconfigs", "--topic", "ord"),
        *("--resource-pattern-type", "PREFIXED"),
    )
    rest = (Operation.DESCRIBE_CONFIGS,)
    assert acls_of(broker) == {
        Acl(TOPIC, "ord", PatternType.PREFIXED, "User:*", "10.0.0.1", *rest, Permission.ALLOW),
        Acl(TOPIC, "ord", PatternType.PREFIXED, "User:eve", "10.0.0.2", *rest, Permission.DENY),
    }
    assert "User:eve" in tool("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert tool("--list", "--topic", "orders", "--resource-pattern-type", "any") == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--add --topic t", "--add needs --allow-principal or --deny-principal"),
        ("--add --allow-principal User:a", "A resource is missing"),
        ("--add --allow-principal alice --topic t", "'alice' is not a principal"),
        ("--add --allow-principal User:a --topic t --operation Fly", "--operation Fly is not one of"),
        ("--add --allow-principal User:a --group g --operation Write", "ResourceType GROUP only supports"),
        (
            "--add --allow-principal User:a --topic t --resource-pattern-type match",
            "cannot be used with --add",
        ),
        ("--add --allow-principal User:a --producer", "--producer needs --topic"),
        ("--add --allow-principal User:a --consumer --topic t", "--consumer needs --topic and --group"),
        ("--add --allow-principal User:a --topic t --idempotent", "--idempotent is only for --producer"),
        ("--list --producer --topic t", "--list cannot be used with --producer"),
        ("--remove --topic t --principal User:a", "--principal is only for --list"),
        ("--topic t", "one of the arguments --add --remove --list is required"),
    ],
)
def test_wrong_usage(tool: Tool, arguments: str, message: str) -> None:
    assert message.lower() in tool(*arguments.split(), code=1).lower()
