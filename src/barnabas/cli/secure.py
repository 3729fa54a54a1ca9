"""`--secure` of `barnabas start` and `barnabas cluster start`: TLS, an admin user and ACLs without a manual.

Everything is made once, in the directory `secure` of the data directory, readable by the owner only:

    ca.pem             the certificate of the authority: what clients have to trust
    ca-key.pem         its key
    broker.pem         key and certificate of the brokers
    admin.properties   settings of a client that is the admin, with Java's keys
    login.properties   the same without user and password: for the console, whose users log in
    users.properties   the admin's password, for the brokers
    brokers.properties the secrets that brokers share: they encrypt settings and make delegation tokens

Clients log in with SCRAM over TLS. Brokers show each other their certificate."""

import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path

DIRECTORY = "secure"
ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PASSWORD_BYTES = 24
SHARED_SECRETS = ("password.encoder.secret", "delegation.token.secret.key")
BROKER_NAME = "broker"
CLIENTS, BROKERS = "SASL_SSL", "BROKERS"


class SecureFiles:
    """The files below a data directory. The methods return settings that refer to them."""

    def __init__(self, data_dir: Path) -> None:
        self.directory = data_dir.absolute() / DIRECTORY
        self._authority = self.directory / "ca.pem"
        self._authority_key = self.directory / "ca-key.pem"
        self._broker = self.directory / "broker.pem"
        self._users = self.directory / "users.properties"
        self.secrets = self.directory / "brokers.properties"
        self.admin = self.directory / "admin.properties"
        self.login = self.directory / "login.properties"

    def make(self) -> None:
        """Make the files that are not there yet."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.directory.chmod(0o700)
        if not self._broker.exists():
            self._make_certificates()
        if not self.login.exists():
            _write_private(self.login, _properties(self._login_settings()).encode())
        if not self.secrets.exists():
            secret = {key: secrets.token_urlsafe(PASSWORD_BYTES) for key in SHARED_SECRETS}
            _write_private(self.secrets, _properties(secret).encode())
        if not self._users.exists():
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            _write_private(self.admin, _properties(self._client_settings(password)).encode())
            # Last: it says that both are there.
            _write_private(self._users, _properties({ADMIN: password}).encode())

    def _make_certificates(self) -> None:
        from barnabas.security.certificates import issue, make_authority

        authority = make_authority(f"Barnabas on {socket.gethostname()}")
        hosts = dict.fromkeys(["localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()])
        broker = issue(authority, BROKER_NAME, hosts)
        _write_private(self._authority_key, authority.key)
        _write_private(self._authority, authority.certificate)
        _write_private(self._broker, broker.key + broker.certificate)

    def _client_settings(self, password: str) -> dict[str, str]:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return {
            **self._login_settings(),
            "sasl.jaas.config": f'{module} required username="{ADMIN}" password="{password}";',
        }

    def _login_settings(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority),
        }

    def client_settings(self) -> dict[str, str]:
        """What a client needs that is the admin."""
        return _settings_in(self.admin)

    def shared_secrets(self) -> dict[str, str]:
        return _settings_in(self.secrets)

    def broker_settings(self) -> dict[str, str]:
        """What brokers have in common besides secrets."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority),
            "sasl.enabled.mechanisms": MECHANISM,
            "barnabas.initial.users.file": str(self._users),
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{ADMIN};User:CN={BROKER_NAME}",
            "listener.security.protocol.map": f"{CLIENTS}:SASL_SSL,{BROKERS}:SSL",
            "inter.broker.listener.name": BROKERS,
            f"listener.name.{BROKERS.lower()}.ssl.client.auth": "required",
        }


def listeners(port: int) -> dict[str, str]:
    """The listeners of one broker: clients use the port, brokers use a free one."""
    return {"listeners": f"{CLIENTS}://127.0.0.1:{port},{BROKERS}://127.0.0.1:0"}


def how_to_connect(bootstrap: str, files: SecureFiles) -> str:
    """What to tell the user."""
    return (
        f"Clients need TLS and a password. The admin's settings are in {files.admin}:\n"
        f"  barnabas topics --list --bootstrap-server {bootstrap} --command-config {files.admin}\n"
        "Another user, and what she may do:\n"
        f"  barnabas configs --alter --entity-type users --entity-name alice \\\n"
        f"    --add-config '{MECHANISM}=[password=...]' \\\n"
        f"    --bootstrap-server {bootstrap} --command-config {files.admin}\n"
        f"  barnabas acls --add --allow-principal User:alice --producer --topic orders \\\n"
        f"    --bootstrap-server {bootstrap} --command-config {files.admin}"
    )


def _settings_in(file: Path) -> dict[str, str]:
    from barnabas.config.properties import load_properties

    return dict(load_properties(file.read_text()))


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _write_private(path: Path, content: bytes) -> None:
    """A file that only the owner can read, from its first moment on; whole or not there."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
