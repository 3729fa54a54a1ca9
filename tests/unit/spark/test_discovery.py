"""Spark imports every module named pyspark_*, and one that fails hides all others: ours must not fail."""

import subprocess
import sys

import pytest

IMPORT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
import pyspark_barnabas
print(getattr(pyspark_barnabas, "DefaultSource", None) and pyspark_barnabas.DefaultSource.name())
print([name for name in ("asyncio", "barnabas.client", "pyarrow.compute", "fastavro") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("missing", "importable"),
    [((), "barnabas"), (("pyarrow", "pandas", "fastavro"), "barnabas"), (("pyspark",), "None")],
)
def test_the_module_can_always_be_imported(missing: tuple[str, ...], importable: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT.format(missing=missing)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == importable


def test_finding_the_source_imports_no_client() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT.format(missing=())], capture_output=True, text=True, check=True
    )
    assert "barnabas.client" not in done.stdout
    assert "fastavro" not in done.stdout
