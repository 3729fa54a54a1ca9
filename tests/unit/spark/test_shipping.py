"""What workers of a cluster get."""

import os
import zipfile
from pathlib import Path

import pytest

from barnabas.spark.shipping import FOLDER, put_on_path, shipment


def test_the_package_its_kernels_and_the_modules_beside_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("A = 1\n")
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("")
    (tmp_path / "helpers" / "more.py").write_text("B = 2\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.json").write_text("{}")
    # A package of the same name does not hide ours.
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "__init__.py").write_text("raise ImportError\n")
    with shipment(tmp_path, {"spark.archives": "theirs.zip", "spark.app.name": "orders"}) as settings:
        theirs, ours = settings["spark.archives"].split(",")
        archive, _, folder = ours.partition("#")
        with zipfile.ZipFile(archive) as shipped:
            names = set(shipped.namelist())
            package = shipped.read("barnabas/__init__.py")
    assert (theirs, folder) == ("theirs.zip", FOLDER)
    assert settings["spark.executorEnv.PYTHONPATH"] == FOLDER
    assert settings["spark.app.name"] == "orders"
    assert {"beside.py", "helpers/__init__.py", "helpers/more.py", "barnabas/spark/source.py"} <= names
    assert {"pyspark_barnabas/__init__.py", "pyspark_barnabas_table/__init__.py"} <= names
    assert any(name.startswith("barnabas/kernels/batches.") and name.endswith(".so") for name in names)
    assert "data/rows.json" not in names
    assert b"raise ImportError" not in package
    assert not Path(archive).exists()


def test_processes_on_this_machine_find_the_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    for _ in range(2):
        put_on_path(tmp_path)
    assert os.environ["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/theirs"
