"""`barnabas version`: which release this is, and of what it is made."""

import argparse
import platform
import sys
from importlib import metadata
from pathlib import Path

import barnabas
from barnabas.cli.output import print_json

DESCRIPTION = "Print the version of Barnabas and of what it uses."
EXAMPLES = """\
  barnabas version          for a bug report
  barnabas version --json   for a script
"""

# The packages whose versions matter in a bug report; those of the extras may be missing.
PACKAGES = ("cramjam", "crc32c", "kazoo", "pyarrow", "pyspark", "deltalake", "pyiceberg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    facts = {
        "version": barnabas.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "kernels": _kernels(),
        "location": str(Path(barnabas.__file__).parent),
        "program": sys.argv[0],
        "packages": _packages(),
    }
    if options.json:
        print_json(facts)
        return 0
    print(f"barnabas {barnabas.__version__}")
    for name in ("python", "platform", "kernels", "location"):
        print(f"{name + ':':11}{facts[name]}")
    for name, version in _packages().items():
        print(f"{name + ':':11}{version or 'not installed'}")
    return 0


def _kernels() -> str:
    from barnabas.kernels import shared

    return "interpreted" if str(shared.__file__).endswith(".py") else "compiled"


def _packages() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found
