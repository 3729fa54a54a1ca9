"""The Python for Spark's processes leaves out Spark's archives only if the same PySpark is installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from barnabas.spark.worker_python import without_archives


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A directory with the packages pyspark and py4j."""
    folder = tmp_path / "site-packages"
    for package in ("pyspark", "py4j"):
        (folder / package).mkdir(parents=True)
    (folder / "pyspark" / "version.py").write_text('__version__ = "4.3.0"\n')
    return folder


def archives(folder: Path, version: str) -> list[str]:
    """The entries that Spark puts first on the path."""
    library = folder / "python" / "lib"
    library.mkdir(parents=True)
    with zipfile.ZipFile(library / "pyspark.zip", "w") as archive:
        archive.writestr("pyspark/version.py", f'__version__ = "{version}"\n')
    return [
        str(library / "pyspark.zip"),
        str(library / "py4j-0.10.9.9-src.zip"),
        "/jars/spark-core_2.13-4.3.0.jar",
    ]


def test_the_archives_inside_the_installed_package_are_left_out(installed: Path) -> None:
    entries = ["", *archives(installed / "pyspark", "4.3.0"), "/shipped/users.zip", "/lib", str(installed)]
    assert without_archives(entries) == ["", "/shipped/users.zip", "/lib", str(installed)]


def test_the_archives_of_another_installation_must_have_the_same_version(
    installed: Path, tmp_path: Path
) -> None:
    same = [*archives(tmp_path / "spark-4.3.0", "4.3.0"), str(installed)]
    assert without_archives(same) == [str(installed)]
    other = [*archives(tmp_path / "spark-4.4.0", "4.4.0"), str(installed)]
    assert without_archives(other) == other


def test_a_process_forgets_the_archives(installed: Path, tmp_path: Path) -> None:
    """Otherwise Python reads them again whenever Spark lets it look for new modules."""
    (tmp_path / "look.py").write_text("import sys; print([*sys.path, *sys.path_importer_cache])")
    left_out = archives(tmp_path / "spark-4.3.0", "4.3.0")[0]
    done = subprocess.run(
        [sys.executable, "-c", "from barnabas.spark.worker_python import main; main()", "-m", "look"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([left_out, str(installed), *sys.path])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(installed) in done.stdout
    assert left_out not in done.stdout


def test_without_an_installed_pyspark_the_archives_stay(tmp_path: Path) -> None:
    entries = [*archives(tmp_path / "spark", "4.3.0"), str(tmp_path)]
    assert without_archives(entries) == entries
    assert without_archives(["/lib"]) == ["/lib"]
