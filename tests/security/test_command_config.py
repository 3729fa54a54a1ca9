"""The tools of the command line with the properties file of Kafka's Java tools (`--command-config`)."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.security.secured_broker import PASSWORD, PROTOCOLS, SecuredBroker, secured_broker

Run = Callable[..., subprocess.CompletedProcess[str]]
FIRST = PROTOCOLS[-1]
TOPIC = "there-from-the-beginning"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


def write_properties(path: Path, settings: dict[str, str]) -> None:
    """As a user writes it: the address is on the command line, and there is something for other clients
    too."""
    lines = [f"{key}={value}" for key, value in settings.items() if key != "bootstrap.servers"]
    path.write_text("# admin\nacks=all\nauto.offset.reset=earliest\n" + "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def run(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Run:
    file = tmp_path_factory.mktemp("properties") / "admin.properties"
    settings = secured.client(FIRST)
    write_properties(file, settings)

    def run(
        tool: str, *arguments: str, stdin: str = "", option: str = "--command-config"
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "barnabas.cli.main", tool]
        command += ["--bootstrap-server", settings["bootstrap.servers"], option, str(file), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert PASSWORD not in done.stdout + done.stderr
        return done

    assert run("topics", "--create", "--topic", TOPIC).returncode == 0
    return run


def test_topics_records_and_groups(run: Run) -> None:
    created = run("topics", "--create", "--topic", "orders", "--partitions", "2")
    assert created.returncode == 0, created.stderr
    assert "orders" in run("topics", "--list").stdout.split()
    for option in ("--command-config", "--producer.config"):
        done = run("console-producer", "--topic", "orders", stdin="a\nb\n", option=option)
        assert done.returncode == 0, done.stderr
    for option in ("--command-config", "--consumer.config"):
        read = run(
            "console-consumer", "--topic", "orders", "--max-messages", "4", "--timeout-ms", "20000",
            "--group", option.strip("-"), option=option,
        )  # fmt: skip
        assert sorted(read.stdout.split()) == ["a", "a", "b", "b"], read.stderr
    described = run("consumer-groups", "--describe", "--group", "command-config")
    assert "orders" in described.stdout, described.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("get-offsets", "--topic", TOPIC),
        ("broker-api-versions",),
        ("configs", "--describe", "--entity-type", "brokers", "--entity-name", "1"),
        ("log-dirs", "--describe"),
        ("transactions", "list"),
        ("consumer-groups", "--list"),
    ],
)
def test_every_tool_takes_the_file(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr


def test_properties_on_the_command_line(secured: SecuredBroker) -> None:
    settings = secured.client(FIRST)
    command = [sys.executable, "-m", "barnabas.cli.main", "console-producer", "--topic", "by-property"]
    command += ["--bootstrap-server", settings.pop("bootstrap.servers")]
    for key, value in settings.items():
        command += ["--command-property", f"{key}={value}"]
    done = subprocess.run(command, input="x\n", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_a_refusal_is_one_sentence_and_an_exit_code(secured: SecuredBroker, tmp_path: Path) -> None:
    settings = secured.client(FIRST, password="wr0ng")
    write_properties(tmp_path / "wrong", settings)
    command = [sys.executable, "-m", "barnabas.cli.main", "topics", "--list"]
    command += ["--bootstrap-server", settings["bootstrap.servers"]]
    command += ["--command-config", str(tmp_path / "wrong")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ") and "refused the authentication" in done.stderr
    assert "Traceback" not in done.stderr and "wr0ng" not in done.stderr
