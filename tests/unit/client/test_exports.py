"""`import barnabas` is cheap, and its clients are there when they are asked for."""

import subprocess
import sys

import pytest

import barnabas


def test_importing_the_package_loads_no_client() -> None:
    code = "import sys, barnabas; print([name for name in sys.modules if name.startswith('barnabas.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["Admin", "Consumer", "Producer"])
def test_the_clients_are_exported(name: str) -> None:
    assert getattr(barnabas, name).__name__ == name


def test_other_names_are_refused() -> None:
    for name in ("Broker", "client_", "json"):
        with pytest.raises(AttributeError, match=name):
            getattr(barnabas, name)
