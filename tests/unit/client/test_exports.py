"""`import barnabas` is cheap, and its clients are imported on first use."""

import ast
import inspect
import operator
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import barnabas


def test_importing_the_package_loads_no_client() -> None:
    code = "import sys, barnabas; print([name for name in sys.modules if name.startswith('barnabas.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def names_for_type_checkers() -> dict[str, str]:
    """The imports that only type checkers see, as name: module."""
    tree = ast.parse(Path(barnabas.__file__).read_text())
    (block,) = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {each.asname or "": str(node.module) for node in imports for each in node.names}


def test_type_checkers_and_programs_see_the_same_names() -> None:
    names = names_for_type_checkers()
    assert sorted({*names, "__version__"}) == sorted(barnabas.__all__) == sorted(set(barnabas.__all__))
    for name, home in names.items():
        assert getattr(barnabas, name) is getattr(import_module(home), name)
    assert set(barnabas.__all__) <= set(dir(barnabas))


def test_everything_that_users_need_is_at_the_root() -> None:
    for module in ("client.admin", "client.consumer", "client.producer", "client.types"):
        public = set(import_module(f"barnabas.{module}").__all__) - {"NO_NODE"}
        assert public <= set(barnabas.__all__), module
    errors = import_module("barnabas.client.errors")
    assert set(errors.__all__) - {"error_from", "raise_for"} <= set(barnabas.__all__)


CLIENTS = ["Admin", "Consumer", "Producer", "AsyncAdmin", "AsyncConsumer", "AsyncProducer", "ConsumerWorkers"]


@pytest.mark.parametrize("name", [*CLIENTS, "OffsetAndMetadata", "SubscriptionPattern", "TopicPartition"])
def test_the_clients_are_exported(name: str) -> None:
    assert getattr(barnabas, name).__name__ == name
    assert name in barnabas.__all__


@pytest.mark.parametrize("name", [*CLIENTS, "client.consumer.ConsumerRecords"])
def test_every_public_method_says_what_it_does(name: str) -> None:
    kind = operator.attrgetter(name)(barnabas)
    assert inspect.getdoc(kind)
    public = [each for each in inspect.getmembers(kind) if not each[0].startswith("_")]
    assert len(public) >= 3
    assert [each for each, member in public if not inspect.getdoc(member)] == []


@pytest.mark.parametrize(("form", "plain"), [("AsyncAdmin", "Admin"), ("AsyncProducer", "Producer")])
def test_the_asyncio_form_has_all_methods(form: str, plain: str) -> None:
    def methods(name: str) -> set[str]:
        return {each for each in dir(getattr(barnabas, name)) if not each.startswith("_")}

    assert methods(plain) - {"send_batch"} <= methods(form)


def test_the_asyncio_consumer_has_all_methods() -> None:
    def methods(kind: object) -> set[str]:
        return {each for each in dir(kind) if not each.startswith("_")}

    assert methods(barnabas.Consumer) <= methods(barnabas.AsyncConsumer)


def test_other_names_are_refused() -> None:
    for name in ("Broker", "client_", "json"):
        with pytest.raises(AttributeError, match=name):
            getattr(barnabas, name)
