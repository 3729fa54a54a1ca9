"""barnabas.testing.Cluster: what it starts, what it ends, and what it shows when a test fails."""

import threading
from pathlib import Path

import pytest

from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster

pytest_plugins = ["pytester"]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_broker_is_stopped_killed_paused_and_restarted_with_its_port_and_data() -> None:
    with Cluster(brokers=1) as cluster:
        broker = cluster.brokers[1]
        first_pid, port, directory = broker.pid, broker.port, broker.data_dir
        assert cluster.bootstrap == cluster.bootstrap_of(1)
        assert cluster.controller() == 1
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 1)])
        cluster.wait_until_in_sync("orders")
        cluster.kill(1)
        assert not is_alive(first_pid)
        cluster.restart(1)
        cluster.pause(1)
        assert "T" in Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()[0]
        cluster.resume(1)
        cluster.stop(1)
        cluster.restart(1)
        assert (broker.port, cluster.leader_of(("orders", 0))) == (port, 1)
        last_pid = broker.pid
    assert not is_alive(last_pid)
    assert not directory.exists()


def test_waiting_for_replicas_of_a_topic_that_the_broker_does_not_know_yet() -> None:
    def create() -> None:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 1)])

    with Cluster(brokers=1) as cluster:
        creating = threading.Timer(0.5, create)
        creating.start()
        cluster.wait_until_in_sync("orders")
        assert cluster.leader_of(("orders", 0)) == 1
        creating.join()


def test_a_broker_is_added_and_removed_again() -> None:
    with Cluster(brokers=1) as cluster:
        assert cluster.add_broker() == 2
        assert cluster.bootstrap == f"{cluster.bootstrap_of(1)},{cluster.bootstrap_of(2)}"
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", assignments={0: [2]})])
            assert {node.id for node in admin.describe_cluster().nodes} == {1, 2}
            admin.delete_topics(["orders"])
        pid = cluster.brokers[2].pid
        cluster.remove_broker(2)
        assert not is_alive(pid)
        assert cluster.bootstrap == cluster.bootstrap_of(1)
        with cluster.admin() as admin:
            assert {node.id for node in admin.describe_cluster(include_fenced_brokers=True).nodes} == {1}


def test_a_broker_gets_environment_variables_at_its_next_start() -> None:
    with Cluster(brokers=1) as cluster:
        cluster.environments[1]["BARNABAS_TEST_MARK"] = "seen"
        assert b"BARNABAS_TEST_MARK" not in Path(f"/proc/{cluster.brokers[1].pid}/environ").read_bytes()
        cluster.restart(1)
        assert b"BARNABAS_TEST_MARK=seen" in Path(f"/proc/{cluster.brokers[1].pid}/environ").read_bytes()


def test_data_in_a_given_directory_stays_and_the_brokers_are_shut_down_cleanly(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        data_dir = cluster.brokers[1].data_dir
    assert (data_dir / ".kafka_cleanshutdown").exists()


def test_a_paused_cluster_is_ended_too() -> None:
    with Cluster(brokers=1) as cluster:
        pid = cluster.brokers[1].pid
        cluster.pause(1)
    assert not is_alive(pid)


def test_a_broker_that_does_not_start_is_shown_with_its_output_and_nothing_stays() -> None:
    cluster = Cluster(brokers=1, overrides={"num.partitions": "none"})
    with pytest.raises(RuntimeError, match=r"broker 1 did not start \(exit 1\):\n(.*\n)*.*num\.partitions"):
        cluster.__enter__()
    assert not cluster.brokers[1].data_dir.exists()
    with pytest.raises(RuntimeError, match="not running"):
        _ = cluster.brokers[1].pid


def test_racks_and_brokers_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="each of the 3 brokers, not 2"):
        Cluster(brokers=3, racks=["a", "b"])
    with pytest.raises(ValueError, match="at least one broker"):
        Cluster(brokers=0)


def test_the_report_of_a_failed_test_has_the_output_of_the_brokers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from barnabas.testing import Cluster

        @pytest.fixture(scope="module")
        def cluster():
            with Cluster(brokers=1) as cluster:
                yield cluster

        def test_that_fails(cluster):
            assert cluster.controller() == 7
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly")
    result.stdout.fnmatch_lines(["*Output of broker 1*", "*ready on*"])
