"""The example of docs/testing.md with a cluster: a test breaks it, and the next test finds it whole."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
(EXAMPLE,) = re.findall(r"<!-- example: cluster -->\n```python\n(.*?)```", PAGE, re.DOTALL)


def test_a_cluster_is_repaired_after_a_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(EXAMPLE)
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
