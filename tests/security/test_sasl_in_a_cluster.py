"""Users and delegation tokens of a cluster: any broker takes them, all brokers know them, and brokers log in
to each other with a credential that was there before the first of them."""

from __future__ import annotations

from pathlib import Path

from tests.security.secured_broker import MODULES
from tests.security.test_sasl_tools import Ran, run

from barnabas import Admin
from barnabas.client.admin import NewTopic, ScramDeletion, ScramUpsertion
from barnabas.client.errors import KafkaError
from barnabas.testing import Cluster

SCRAM = "SCRAM-SHA-512"
ENCODER = {"password.encoder.secret": "protects what is in ZooKeeper"}
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "listener.name.clients.sasl.enabled.mechanisms": f"SCRAM-SHA-256,{SCRAM}",
    "listener.name.brokers.sasl.enabled.mechanisms": SCRAM,
    "sasl.enabled.mechanisms": SCRAM,
    "sasl.mechanism.inter.broker.protocol": SCRAM,
    "listener.name.brokers.scram-sha-512.sasl.jaas.config": (
        f'{MODULES[SCRAM]} required username="broker" password="b-secret";'
    ),
    "delegation.token.secret.key": "shared by all brokers",
    **ENCODER,
}


def login(user: str, password: str, mechanism: str = SCRAM, *, is_token: bool = False) -> dict[str, str]:
    token = ' tokenauth="true"' if is_token else ""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{MODULES[mechanism]} required username="{user}" password="{password}"{token};',
    }


def may_log_in(cluster: Cluster, broker_id: int, settings: dict[str, str]) -> bool:
    try:
        with Admin({"bootstrap.servers": cluster.bootstrap_of(broker_id), **settings}) as admin:
            return len(admin.describe_cluster(timeout=10).nodes) > 0
    except KafkaError:
        return False


def add_first_users(cluster: Cluster, directory: Path) -> Ran:
    file = directory / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in ENCODER.items()))
    cluster.zookeepers.start()
    return run(
        *("metadata", "add-scram", "--zookeeper", cluster.zookeeper_connect, "--config", str(file)),
        *("--add-scram", f"{SCRAM}=[name=broker,password=b-secret]"),
        *("--add-scram", f"{SCRAM}=[name=admin,iterations=8192,password=a-secret]"),
    )


def test_users_and_tokens_of_a_cluster(tmp_path: Path) -> None:
    cluster = Cluster(3, SETTINGS)
    assert add_first_users(cluster, tmp_path).code == 0
    admin_login = login("admin", "a-secret")
    with cluster:
        brokers = (1, 2, 3)
        assert all(may_log_in(cluster, broker_id, admin_login) for broker_id in brokers)
        while_running = run(
            *("metadata", "add-scram", "--zookeeper", cluster.zookeeper_connect),
            *("--add-scram", f"{SCRAM}=[name=late,password=x-secret]"),
        )
        assert while_running.code == 1 and "are running" in while_running.err

        # Whichever broker is asked, the controller decides and all know it.
        for broker_id in brokers:
            user = f"user-{broker_id}"
            with Admin({"bootstrap.servers": cluster.bootstrap_of(broker_id), **admin_login}) as admin:
                admin.alter_user_scram_credentials([ScramUpsertion(user, "u-secret", "SCRAM-SHA-256")])
                assert user in admin.describe_user_scram_credentials()
                token = admin.create_delegation_token(["User:renewer"])
            cluster.wait_until(
                lambda user=user: all(  # type: ignore[misc]
                    may_log_in(cluster, each, login(user, "u-secret", "SCRAM-SHA-256")) for each in brokers
                ),
                f"all brokers to know {user}",
            )
            by_token = login(token.token_id, token.password, "SCRAM-SHA-256", is_token=True)
            assert all(may_log_in(cluster, each, by_token) for each in brokers)

        # Replication works over connections with SCRAM, and a new controller knows all users and tokens.
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 3, 3)])
            controller = admin.describe_cluster().controller
        cluster.wait_until_in_sync("orders")
        assert controller is not None
        cluster.kill(controller.id)
        others = [broker_id for broker_id in brokers if broker_id != controller.id]
        with Admin({"bootstrap.servers": cluster.bootstrap_of(others[0]), **admin_login}) as admin:
            admin.alter_user_scram_credentials([ScramDeletion("user-1", "SCRAM-SHA-256")], timeout=60)
            admin.expire_delegation_token(token.hmac)
            assert len(admin.describe_delegation_tokens()) == 2
        gone = login("user-1", "u-secret", "SCRAM-SHA-256")
        cluster.wait_until(lambda: not may_log_in(cluster, others[1], gone), "the user to be gone")
        cluster.wait_until(lambda: not may_log_in(cluster, others[1], by_token), "the token to be gone")
        dumped = run("metadata", "dump", "--zookeeper", cluster.zookeeper_connect, "--log")
        assert "user=admin mechanism=2 credential=(hidden)" in dumped.out
        assert "barnabas-encrypted" not in dumped.out
        for name, output in cluster.outputs().items():
            assert "Traceback" not in output and "-secret" not in output, f"{name}: {output}"
