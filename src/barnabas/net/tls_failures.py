"""What a failed TLS handshake means for the user: which side refused, why, and what to check."""

import ssl

from barnabas.errors import AuthenticationError, DisconnectedError, ErrorCode, KafkaError

_X509_EXPIRED, _X509_NOT_YET_VALID = 10, 9
_X509_NO_ISSUER = frozenset({2, 18, 19, 20, 21, 27})
_X509_NAMES = frozenset({62, 64})

_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"})
_VERSIONS = frozenset({"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"})
_CIPHERS = frozenset(
    {"SSLV3_ALERT_HANDSHAKE_FAILURE", "NO_SHARED_CIPHER", "TLSV1_ALERT_INSUFFICIENT_SECURITY"}
)
_NEEDS_CERTIFICATE = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED"})


def tls_failure(place: str, error: ssl.SSLError) -> KafkaError:
    """AuthenticationError if the two sides do not accept each other; DisconnectedError if the connection was
    only lost."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _fatal(
            f"This client does not trust the certificate of {place}: {error.verify_message}. "
            f"{_what_to_check(error.verify_code)}"
        )
    reason = error.reason or ""
    if reason in _NOT_TLS:
        return _fatal(f"{place} does not speak TLS: check that security.protocol is that of the listener.")
    if reason in _VERSIONS:
        return _fatal(f"{place} and this client have no common TLS version: check ssl.enabled.protocols.")
    if reason in _NEEDS_CERTIFICATE:
        return _fatal(
            f"{place} wants a certificate of this client: set ssl.keystore.location "
            "(or ssl.certificate.location and ssl.key.location)."
        )
    if reason in _CIPHERS:
        return _fatal(
            f"{place} refused the TLS handshake: it wants a certificate of this client "
            "(ssl.keystore.location), or there is no common cipher suite (ssl.cipher.suites)."
        )
    if "ALERT" in reason:
        words = reason.rpartition("ALERT_")[2].lower().replace("_", " ")
        return _fatal(
            f"{place} refused the certificate of this client ({words}): check that ssl.keystore.location "
            "has a valid certificate of an authority that the broker trusts."
        )
    return DisconnectedError(f"the TLS connection to {place} failed: {error.reason or error}")


def _fatal(sentence: str) -> AuthenticationError:
    return AuthenticationError(sentence, ErrorCode.NETWORK_EXCEPTION)


def _what_to_check(code: int) -> str:
    if code in _X509_NAMES:
        return "Connect with a name that the certificate has, or get the broker a certificate for this name."
    if code == _X509_EXPIRED:
        return "The broker needs a new certificate; if it has one, check the clock of this machine."
    if code == _X509_NOT_YET_VALID:
        return "Check the clocks of both machines."
    if code in _X509_NO_ISSUER:
        return "Check that ssl.truststore.location (or ssl.ca.location) has the authority that signed it."
    return "Check the broker's certificate and ssl.truststore.location."
