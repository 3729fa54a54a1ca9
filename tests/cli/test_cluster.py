"""cluster, broker-api-versions, and the tools that need more than one broker."""

import json

import pytest
from tests.cli.conftest import Ran, Run
from tests.clients.broker_process import BrokerProcess

import barnabas


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return "--bootstrap-server", bootstrap


def test_cluster_id(run: Run, bootstrap: str) -> None:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        expected = admin.describe_cluster().cluster_id
    assert run("cluster", "cluster-id", "-b", bootstrap) == Ran(0, f"Cluster ID: {expected}\n", "")
    assert json.loads(run("cluster", "cluster-id", "-b", bootstrap, "--json").out) == {"clusterId": expected}


@pytest.mark.parametrize("fenced", [[], ["--include-fenced-brokers"]])
def test_endpoints(run: Run, broker: BrokerProcess, server: tuple[str, str], fenced: list[str]) -> None:
    port = broker.bootstrap.rpartition(":")[2]
    ran = run("cluster", "list-endpoints", *server, *fenced)
    assert ran.lines == [
        "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  ",
        f"1          127.0.0.1 {port:<10} null       unfenced   broker         ",
    ]
    (endpoint,) = json.loads(run("cluster", "list-endpoints", *server, *fenced, "--json").out)
    assert endpoint == {
        "id": 1,
        "host": "127.0.0.1",
        "port": int(port),
        "rack": None,
        "state": "unfenced",
        "endpointType": "broker",
    }


def test_a_broker_that_is_not_registered_cannot_be_unregistered(run: Run, server: tuple[str, str]) -> None:
    ran = run("cluster", "unregister", *server, "--id", "3")
    refused = "Error: BROKER_ID_NOT_REGISTERED: Broker ID 3 is not currently registered\n"
    assert ran == Ran(1, "", refused)
    assert "needs --id" in run("cluster", "unregister", *server).err


def test_no_partition_is_moving(run: Run, server: tuple[str, str]) -> None:
    assert run("reassign-partitions", *server, "--list") == Ran(0, "No partition reassignments found.\n", "")


def test_a_cluster_needs_an_address_and_a_command(run: Run, server: tuple[str, str]) -> None:
    assert "--bootstrap-server" in run("cluster", "cluster-id").err
    assert run("cluster", *server).code == 1
    assert "no separate controllers" in run("cluster", "cluster-id", "-C", "localhost:1").err


def test_versions_of_requests(run: Run, bootstrap: str, server: tuple[str, str]) -> None:
    ran = run("broker-api-versions", *server)
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0] == f"{bootstrap} (id: 1 rack: null isFenced: false) -> ("
    assert ran.lines[-1] == ")"
    for row in (
        "\tProduce(0): 0 to 13 [usable: 13],",
        "\tFetch(1): 4 to 18 [usable: 18],",
        "\tOffsetDelete(47): 0 [usable: 0],",
        "\tGetTelemetrySubscriptions(71): UNSUPPORTED,",
    ):
        assert row in ran.lines
    assert not ran.lines[-2].endswith(",")


def test_versions_of_requests_as_json(run: Run, server: tuple[str, str]) -> None:
    (described,) = json.loads(run("broker-api-versions", *server, "--json").out)
    apis = {api["name"]: api for api in described["apis"]}
    assert apis["Fetch"] == {
        "key": 1,
        "name": "Fetch",
        "minVersion": 4,
        "maxVersion": 18,
        "usableVersion": 18,
    }
    assert apis["ElectLeaders"]["maxVersion"] == 2
    assert apis["GetTelemetrySubscriptions"]["maxVersion"] is None
    assert described["broker"]["id"] == 1


@pytest.mark.parametrize(
    "command, arguments, message",
    [
        ("acls", "--list --add", "not allowed with"),
        ("acls", "--add --operation Fly", "--operation Fly is not one of All, Read"),
        ("acls", "--list", "No Authorizer is configured"),
        ("leader-election", "--election-type free --all-topic-partitions", "invalid choice"),
        ("leader-election", "--election-type preferred --topic orders", "must be used together"),
        ("leader-election", "--election-type preferred", "is required"),
        ("reassign-partitions", "--list --verify", "exactly one action"),
        ("reassign-partitions", "--execute", "--execute needs --reassignment-json-file"),
        ("reassign-partitions", "--generate --topics-to-move-json-file t", "--generate needs --broker-list"),
        ("reassign-partitions", "--list --throttle fast", "invalid int value"),
        ("reassign-partitions", "--list --throttle 7", "--throttle cannot be used with --list"),
        ("reassign-partitions", "--verify --reassignment-json-file f --additional", "cannot be used with"),
    ],
)
def test_wrong_options_of_these_tools_are_reported(
    run: Run, server: tuple[str, str], command: str, arguments: str, message: str
) -> None:
    ran = run(command, *server, *arguments.split())
    assert ran.code == 1 and message in ran.err


def test_every_tool_prints_its_version(run: Run) -> None:
    assert run("topics", "--version") == Ran(0, f"barnabas {barnabas.__version__}\n", "")
