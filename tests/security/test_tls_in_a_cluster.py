"""TLS for the clients of a cluster: certificates change on each broker, and a broker refuses what it cannot
use, whichever broker is the controller."""

from pathlib import Path

import pytest
from cryptography import x509
from tests.support.certificates import Authority
from tests.support.raw_tls import TlsRawClient, context_of

from barnabas import Admin
from barnabas.client.admin import AdminError, AlterConfigOp, ConfigResource, ConfigResourceType
from barnabas.errors import ErrorCode
from barnabas.testing import Cluster

LOCATION = "listener.name.clients.ssl.keystore.location"


def shown(cluster: Cluster, broker_id: int, authority: Authority) -> int:
    """The serial number of the certificate that a new connection gets."""
    port = int(cluster.bootstrap_of(broker_id).rpartition(":")[2])
    with TlsRawClient(port, context_of(authority)) as client:
        certificate = client.tls.getpeercert(binary_form=True)
        assert certificate is not None
        return x509.load_der_x509_certificate(certificate).serial_number


def set_location(admin: Admin, broker_id: int, location: str) -> None:
    resource = ConfigResource(ConfigResourceType.BROKER, str(broker_id))
    admin.incremental_alter_configs({resource: [AlterConfigOp(LOCATION, location)]})


def test_certificates_of_a_cluster(tmp_path: Path) -> None:
    authority = Authority()
    first, second = authority.server(), authority.server()
    stores = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL,BROKERS:PLAINTEXT",
        "listener.name.clients.ssl.keystore.type": "PEM",
        LOCATION: first.write_pem(tmp_path / "first.pem"),
    }
    client = {"security.protocol": "SSL", "ssl.ca.location": authority.write_pem(tmp_path / "ca.pem")}
    location = second.write_pem(tmp_path / "second.pem")
    with (
        Cluster(overrides=stores) as cluster,
        Admin({"bootstrap.servers": cluster.bootstrap, **client}) as admin,
    ):
        for broker_id in (1, 2, 3):
            with pytest.raises(AdminError, match="cannot be read") as caught:
                set_location(admin, broker_id, "/no/such/file")
            assert caught.value.code == ErrorCode.INVALID_REQUEST
            assert shown(cluster, broker_id, authority) == first.certificate.serial_number
            set_location(admin, broker_id, location)
            cluster.wait_until(
                lambda broker_id=broker_id: (
                    shown(cluster, broker_id, authority) == second.certificate.serial_number
                ),
                f"broker {broker_id} shows the new certificate",
            )
