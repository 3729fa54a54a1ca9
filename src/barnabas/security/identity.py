"""Whether a new certificate is for the same broker as the old one, as Kafka asks when they change."""

from typing import TYPE_CHECKING

from barnabas.security.key_stores import TlsError

if TYPE_CHECKING:
    from cryptography import x509


def check_same_identity(
    old_chain: str, new_chain: str, *, may_change_subject: bool, may_change_names: bool
) -> None:
    """TlsError if the first certificate of the new chain (PEM) has another subject, or lacks a name of the
    old one: a wrong file would lock out all clients."""
    if old_chain == new_chain or (may_change_subject and may_change_names):
        return
    # Imported here: it takes time, and most brokers never need it.
    from cryptography import x509

    try:
        old, new = (x509.load_pem_x509_certificate(chain.encode()) for chain in (old_chain, new_chain))
    except ValueError:
        raise TlsError("The new certificate cannot be read.") from None
    if not may_change_subject and old.subject != new.subject:
        raise TlsError(
            f"The new certificate has the subject {new.subject.rfc4514_string()} in place of "
            f"{old.subject.rfc4514_string()}: set ssl.allow.dn.changes=true if that is right."
        )
    missing = _names(old) - _names(new)
    if not may_change_names and missing:
        raise TlsError(
            f"The new certificate lacks the names {', '.join(sorted(missing))} of the old one: "
            "set ssl.allow.san.changes=true if that is right."
        )


def _names(certificate: "x509.Certificate") -> set[str]:
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in extension.value}
