"""The pytest plugin, used by test suites of its users: scopes, topics, time, crashes, pytest-xdist."""

import os
import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # pytester moves to another directory, where relative paths would lead nowhere.
    path = [
        str(Path(entry).resolve()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry
    ]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


def passed(suite: pytest.Pytester, count: int, *options: str) -> pytest.RunResult:
    result = suite.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=count)
    return result


def test_the_examples_of_the_page_pass(suite: pytest.Pytester) -> None:
    assert list(EXAMPLES) == ["topics", "conftest", "alone", "cluster"]
    suite.makeconftest(EXAMPLES["conftest"])
    suite.makepyfile(test_topics=EXAMPLES["topics"], test_alone=EXAMPLES["alone"])
    passed(suite, 5)


def test_the_page_names_every_fixture() -> None:
    from barnabas.testing import fixtures

    own = {name for name in vars(fixtures) if name.startswith("barnabas_")}
    assert own == set(re.findall(r"`(barnabas_\w+)`", PAGE.partition("## ")[0]))


PORTS = """
import pytest

ports = []


@pytest.mark.parametrize("turn", range(3))
def test_note_the_port(barnabas_broker, turn):
    ports.append(barnabas_broker.port)


def test_count_the_brokers(barnabas_broker):
    print("brokers:", len({*ports, barnabas_broker.port}))
"""


@pytest.mark.parametrize(
    ("options", "ini", "brokers"),
    [
        ((), "function", 4),
        (("--barnabas-scope=module",), "function", 1),
    ],
)
def test_the_scope_is_chosen(
    suite: pytest.Pytester, options: tuple[str, ...], ini: str, brokers: int
) -> None:
    suite.makepyfile(PORTS)
    if ini:
        suite.makeini(f"[pytest]\nbarnabas_scope = {ini}\n")
    result = passed(suite, 4, "-s", *options)
    result.stdout.fnmatch_lines([f"*brokers: {brokers}*"])


def test_a_wrong_scope_is_one_sentence(suite: pytest.Pytester) -> None:
    suite.makepyfile(PORTS)
    suite.makeini("[pytest]\nbarnabas_scope = world\n")
    result = suite.runpytest_subprocess("-p", "no:cacheprovider")
    result.stderr.fnmatch_lines(["*barnabas_scope is 'world': it must be one of session, package, *"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_workers_of_xdist_do_not_share_anything(suite: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    suite.makepyfile(
        """
        import pytest
        from barnabas import Admin, Producer

        @pytest.mark.parametrize("turn", range(8))
        def test_send(barnabas_broker, barnabas_topic, turn, worker_id, tmp_path_factory):
            with Producer(bootstrap_servers=barnabas_broker.bootstrap) as producer:
                assert producer.send(barnabas_topic, b"x").result(30).offset == 0
            # All topics of this broker are from this worker.
            noted = tmp_path_factory.getbasetemp().parent / f"topics-of-{worker_id}"
            with noted.open("a") as file:
                file.write(barnabas_topic + chr(10))
            with Admin(bootstrap_servers=barnabas_broker.bootstrap) as admin:
                assert set(admin.list_topics()) == set(noted.read_text().split())
        """
    )
    passed(suite, 8, "-n", "2")


def test_topics_are_new_for_each_test_and_named_after_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import re
        import pytest
        from barnabas import Admin

        names = []

        @pytest.mark.parametrize("value", ["a b/c", "ü" * 300])
        def test_names(barnabas_topic, barnabas_topics, value):
            names.extend([barnabas_topic, barnabas_topics(partitions=2)])
            assert len(set(names)) == len(names)
            assert all(re.fullmatch(r"test_names[A-Za-z0-9._-]{1,150}", name) for name in names)

        def test_partitions(barnabas_broker):
            with Admin(bootstrap_servers=barnabas_broker.bootstrap) as admin:
                described = admin.describe_topics(names)
            assert [len(described[name].partitions) for name in names] == [1, 2, 1, 2]
        """
    )
    passed(suite, 3)
