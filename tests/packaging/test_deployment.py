"""The files in deploy/ and the workflow refer to options, settings, ports and paths that exist."""

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.broker.startup import broker_config
from barnabas.cli.connecting import key_values
from barnabas.cli.main import parser_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PYPROJECT_VERSIONS = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
CLIENT_PORT, METRICS_PORT = 9092, 9404


def check_start(words: list[str], settings: Path) -> Any:
    """The configuration of a broker that `barnabas start` would start with these arguments."""
    options = parser_of("start").parse_args(words)
    file = settings if options.config else None
    overrides = key_values(options.override, "--override")
    overrides["barnabas.metrics.port"] = str(options.metrics_port)
    config = broker_config(file, options.data_dir, options.port, overrides)
    assert config.unknown_sentences() == []
    assert config.without_effect == []
    return config


def in_shell(command: str, pod: str) -> list[str]:
    """The words of a command after the shell has replaced what the manifests use."""
    number = int(pod.rpartition("-")[2]) + 1
    for name, value in (
        ("$((${HOSTNAME##*-} + 1))", str(number)),
        ("$HOSTNAME", pod),
        ("$NODE", "node-a"),
        ("$NAMESPACE", "barnabas"),
    ):
        command = command.replace(name, value)
    assert "$" not in command, f"an unknown variable in: {command}"
    return shlex.split(command)


# ---- systemd


def test_the_unit_starts_a_broker_and_stops_it_cleanly() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((DEPLOY / "systemd" / "barnabas.service").read_text())
    service = unit["Service"]
    program, command, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("barnabas", "start")
    config = check_start(words, DEPLOY / "systemd" / "server.properties")
    assert config["log.dirs"] == (f"/var/lib/{service['StateDirectory']}",)
    assert service["KillSignal"] == "SIGTERM"


# ---- Docker


def dockerfile() -> list[tuple[str, str]]:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines.splitlines() if line.strip()]


def test_the_image_has_its_files_and_starts_a_broker(tmp_path: Path) -> None:
    steps = dockerfile()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for instruction, rest in steps:
        if instruction == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), f"COPY of {source}, which does not exist"
                assert f"!{source}" in ignored, f".dockerignore leaves {source} out"
    words = json.loads(dict(steps)["CMD"])
    assert json.loads(dict(steps)["ENTRYPOINT"]) + words[:1] == ["barnabas", "start"]
    config = check_start(words[1:], tmp_path)
    assert config["log.dirs"] == (dict(steps)["VOLUME"],)
    ports = (config.listeners[0].port, config["barnabas.metrics.port"])
    assert dict(steps)["EXPOSE"].split() == [str(port) for port in ports]
    images = {rest.split()[0] for instruction, rest in steps if instruction == "FROM"}
    assert images <= {f"python:{version}-slim" for version in PYPROJECT_VERSIONS}


def test_the_compose_file_has_three_brokers_that_differ() -> None:
    compose = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())
    services = compose["services"]
    brokers = {name: service for name, service in services.items() if service["image"] == "barnabas"}
    ids, ports = set(), set()
    for name, service in brokers.items():
        build = service["build"]
        assert (DEPLOY / "docker" / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).exists()
        assert set(service["depends_on"]) <= set(services)
        assert service["command"][0] == "start"
        config = check_start(service["command"][1:], DEPLOY / "docker" / "cluster.properties")
        inside, outside = config.advertised_listeners
        assert (inside.host, outside.host) == (name, "localhost")
        assert service["ports"] == [f"127.0.0.1:{outside.port}:{outside.port}"]
        mounts = dict(volume.split(":")[:2] for volume in service["volumes"])
        assert mounts["./cluster.properties"] == "/etc/barnabas/server.properties"
        assert name in compose["volumes"]
        ids.add(config["broker.id"])
        ports.add(outside.port)
    assert (ids, ports) == ({1, 2, 3}, {9092, 9093, 9094})


# ---- Kubernetes


def manifests() -> Iterator[dict[str, Any]]:
    folder = DEPLOY / "kubernetes"
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        yield from yaml.safe_load_all((folder / name).read_text())


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def test_pods_of_the_brokers_start_brokers_that_find_each_other(tmp_path: Path) -> None:
    pods = manifest("StatefulSet", "barnabas")["spec"]
    settings = tmp_path / "server.properties"
    settings.write_text(manifest("ConfigMap", "barnabas")["data"]["server.properties"])
    (container,) = pods["template"]["spec"]["containers"]
    shell, flag, command = container["command"]
    assert (shell, flag) == ("sh", "-c")
    for number in range(pods["replicas"]):
        words = in_shell(command, f"barnabas-{number}")
        assert words[:3] == ["exec", "barnabas", "start"]
        config = check_start(words[3:], settings)
        assert config["broker.id"] == number + 1
        (advertised,) = config.advertised_listeners
        assert advertised.host == f"barnabas-{number}.{pods['serviceName']}.barnabas.svc"
        assert config["zookeeper.connect"].startswith("zookeeper:2181")
        assert config["barnabas.metrics.host"] == "0.0.0.0"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"kafka": CLIENT_PORT, "metrics": METRICS_PORT}
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
    assert probes == {
        "startup": {"path": "/health", "port": "metrics"},
        "readiness": {"path": "/ready", "port": "metrics"},
        "liveness": {"path": "/health", "port": "metrics"},
    }


@pytest.mark.parametrize("name", ["barnabas", "zookeeper"])
def test_pods_keep_their_volumes_and_leave_one_at_a_time(name: str) -> None:
    pods = manifest("StatefulSet", name)["spec"]
    labels = pods["template"]["metadata"]["labels"]
    assert pods["selector"]["matchLabels"] == labels
    budget = manifest("PodDisruptionBudget", name)["spec"]
    assert (budget["selector"]["matchLabels"], budget["maxUnavailable"]) == (labels, 1)
    service = manifest("Service", pods["serviceName"])["spec"]
    assert service["selector"] == labels
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"]
    (container,) = pods["template"]["spec"]["containers"]
    claims = {claim["metadata"]["name"] for claim in pods["volumeClaimTemplates"]}
    volumes = {volume["name"] for volume in pods["template"]["spec"].get("volumes", ())}
    assert {mount["name"] for mount in container["volumeMounts"]} == claims | volumes
    names = {port["name"] for port in container["ports"]}
    assert {port["name"] for port in service["ports"]} <= names


def test_zookeeper_servers_know_each_other() -> None:
    pods = manifest("StatefulSet", "zookeeper")["spec"]
    (container,) = pods["template"]["spec"]["containers"]
    servers = next(each["value"] for each in container["env"] if each["name"] == "ZOO_SERVERS").split()
    assert servers == [
        f"server.{number + 1}=zookeeper-{number}.{pods['serviceName']}:2888:3888;2181"
        for number in range(pods["replicas"])
    ]
    assert in_shell(container["command"][2], "zookeeper-2")[0] == "ZOO_MY_ID=3"


# ---- the workflow


def test_the_workflow_builds_a_wheel_for_each_version_that_is_supported() -> None:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = tables["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-manylinux*" for version in PYPROJECT_VERSIONS]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    assert workflow[True]["release"] == {"types": ["published"]}  # YAML reads "on" as true.
    jobs = workflow["jobs"]
    assert set(jobs["attach"]["needs"]) == set(jobs) - {"attach"}
    assert any("cibuildwheel" in step.get("uses", "") for step in jobs["wheels"]["steps"])
