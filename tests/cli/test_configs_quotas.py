"""`barnabas configs` for users, clients and ips: the lines that Kafka's tool prints."""

import json

import pytest
from tests.cli.conftest import Ran, Run

from barnabas.cli.configs.quotas import java_double


class Configs:
    def __init__(self, run: Run, bootstrap: str) -> None:
        self._run = run
        self._bootstrap = bootstrap

    def __call__(self, line: str) -> Ran:
        return self._run("configs", "--bootstrap-server", self._bootstrap, *line.split())


@pytest.fixture
def configs(run: Run, bootstrap: str) -> Configs:
    return Configs(run, bootstrap)


def test_quotas_of_a_client_id(configs: Configs) -> None:
    app = "--entity-type clients --entity-name cli-app"
    added = "producer_byte_rate=1048576,consumer_byte_rate=10485760,request_percentage=12.5"
    assert configs(f"--alter {app} --add-config {added}") == Ran(
        0, "Completed updating config for client cli-app.\n", ""
    )
    assert configs(f"--describe {app}") == Ran(
        0,
        "Quota configs for client-id 'cli-app' are consumer_byte_rate=1.048576E7, "
        "producer_byte_rate=1048576.0, request_percentage=12.5\n",
        "",
    )
    (shown,) = json.loads(configs("--describe --client cli-app --json").out)
    assert shown["entity"] == {"client-id": "cli-app"}
    assert shown["quotas"]["request_percentage"] == 12.5
    removed = "--delete-config producer_byte_rate,consumer_byte_rate,request_percentage"
    assert configs(f"--alter --client cli-app {removed}").code == 0
    assert configs(f"--describe {app}") == Ran(0, "", "")


def test_quotas_of_a_user_with_a_client_id_and_of_defaults(configs: Configs) -> None:
    both = "--entity-type users --entity-name cli-user --entity-type clients --entity-default"
    assert configs(f"--alter {both} --add-config producer_byte_rate=5000000").lines == [
        "Completed updating config for user cli-user."
    ]
    assert configs(f"--describe {both}").lines == [
        "Quota configs for user-principal 'cli-user', the default client-id are producer_byte_rate=5000000.0"
    ]
    # A type without a name stands for all of its entities, and only those of exactly these types.
    assert (
        configs("--describe --entity-type users --entity-type clients").lines
        == configs(f"--describe {both}").lines
    )
    assert configs("--describe --user cli-user").lines == []
    assert configs(f"--alter {both} --delete-config producer_byte_rate").code == 0
    assert configs("--alter --user-defaults --add-config controller_mutation_rate=10000").lines == [
        "Completed updating default config for users in the cluster."
    ]
    assert configs("--describe --entity-type users --entity-default").lines == [
        "Quota configs for the default user-principal are controller_mutation_rate=10000.0"
    ]
    assert configs("--alter --user-defaults --delete-config controller_mutation_rate").code == 0


def test_quotas_of_addresses(configs: Configs) -> None:
    address = "--entity-type ips --entity-name 10.9.8.7"
    assert configs(f"--alter {address} --add-config connection_creation_rate=100").lines == [
        "Completed updating config for ip 10.9.8.7."
    ]
    assert configs("--describe --entity-type ips").lines == [
        "Quota configs for ip '10.9.8.7' are connection_creation_rate=100.0"
    ]
    assert configs("--alter --ip 10.9.8.7 --delete-config connection_creation_rate").code == 0
    assert configs("--describe --ip-defaults").lines == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--alter --client a --add-config retention.ms=1", "Only quota configs can be added for 'clients'"),
        ("--alter --client a --delete-config producer_byte_rate", "Invalid config(s): producer_byte_rate"),
        ("--alter --client a --add-config producer_byte_rate=fast", "Cannot parse quota configuration value"),
        ("--alter --client a --add-config producer_byte_rate=-1", "must be greater than 0"),
        ("--alter --ip 10.0.0.1 --add-config producer_byte_rate=1", "Only connection quota configs"),
        ("--alter --ip nowhere --add-config connection_creation_rate=1", "must be a valid IP"),
        ("--alter --entity-type users --add-config producer_byte_rate=1", "An entity-name or default entity"),
        (
            "--alter --entity-type users --entity-type clients --entity-name a --add-config k=1",
            "Exactly one entity name",
        ),
        ("--describe --entity-type users --entity-name a --entity-name b", "More entity names"),
    ],
)
def test_refusals(configs: Configs, line: str, message: str) -> None:
    ran = configs(line)
    assert ran.code == 1
    assert message in ran.err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1048576000.0, "1.048576E9"),
        (0.001, "0.001"),
        (0.00015, "1.5E-4"),
        (2.0**63, "9.223372036854776E18"),
    ],
)
def test_numbers_are_printed_as_java_does(value: float, text: str) -> None:
    assert java_double(value) == text
