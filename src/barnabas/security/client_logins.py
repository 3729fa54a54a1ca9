"""From settings to a login: sasl.mechanism, sasl.jaas.config, and the names that librdkafka has for the same.

Errors never repeat a value: most of them are secrets."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from barnabas.config.definition import ConfigError
from barnabas.security.jaas import JaasError, LoginModule, parse_jaas
from barnabas.security.logins import (
    BearerLogin,
    Login,
    PasswordLogin,
    TokenEndpoint,
    TokenProvider,
    UnsecuredClaims,
)
from barnabas.security.sasl.client import MECHANISMS, OAUTHBEARER, PLAIN, SCRAM

# Returns the value of a key, or None if it is not set.
Get: TypeAlias = Callable[[str], Any]

_MODULES = {"PlainLoginModule": (PLAIN,), "ScramLoginModule": SCRAM, "OAuthBearerLoginModule": (OAUTHBEARER,)}
_FETCHING = "OAuthBearerLoginCallbackHandler"
_TIMEOUT_MS = 10_000


def login_of(get: Get, protocol: str) -> Login:
    mechanism = _mechanism(get, protocol)
    module = _module(get, mechanism)
    if mechanism == OAUTHBEARER:
        return _bearer_login(get, {} if module is None else module.options)
    return _password_login(get, mechanism, module)


def _mechanism(get: Get, protocol: str) -> str:
    mechanism = str(get("sasl.mechanism") or get("sasl.mechanisms") or "").upper()
    known = ", ".join(MECHANISMS)
    if mechanism == "GSSAPI":
        raise ConfigError(f"sasl.mechanism cannot be GSSAPI, which is not supported: use one of {known}.")
    if not mechanism:
        raise ConfigError(f"security.protocol={protocol} needs sasl.mechanism: set it to one of {known}.")
    if mechanism not in MECHANISMS:
        raise ConfigError(f"sasl.mechanism cannot be {mechanism!r}: it must be one of {known}.")
    return mechanism


def _module(get: Get, mechanism: str) -> LoginModule | None:
    text = get("sasl.jaas.config")
    if not text:
        return None
    try:
        module = parse_jaas(text)
    except JaasError as error:
        raise ConfigError(str(error)) from None
    if get("sasl.username") or get("sasl.password"):
        raise ConfigError(
            "sasl.jaas.config and sasl.username or sasl.password are both set: set one of them."
        )
    if mechanism not in _MODULES.get(module.name, (mechanism,)):
        right = next(name for name, mechanisms in _MODULES.items() if mechanism in mechanisms)
        raise ConfigError(
            f"sasl.jaas.config names {module.name}, but sasl.mechanism={mechanism} needs {right}: "
            "change one of them."
        )
    return module


def _password_login(get: Get, mechanism: str, module: LoginModule | None) -> PasswordLogin:
    options: Mapping[str, Any] = (
        {"username": get("sasl.username"), "password": get("sasl.password")}
        if module is None
        else module.options
    )
    user, password = options.get("username"), options.get("password")
    if not user or password is None:
        where = (
            "sasl.jaas.config, or sasl.username and sasl.password" if module is None else "sasl.jaas.config"
        )
        missing = "a username" if not user else "a password"
        raise ConfigError(f"sasl.mechanism={mechanism} needs {missing}: set it in {where}.")
    if "\0" in user or "\0" in password:
        raise ConfigError("The username and the password of SASL must not have null characters in them.")
    is_token = mechanism != PLAIN and str(options.get("tokenauth", "")).lower() == "true"
    return PasswordLogin(mechanism, user, password, is_token)


def _bearer_login(get: Get, options: Mapping[str, str]) -> BearerLogin:
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in options.items()
        if name.startswith("extension_")
    }
    extensions |= _pairs(get("sasl.oauthbearer.extensions"))
    provider = get("sasl.oauth.token.provider")
    if provider is not None:
        return BearerLogin(TokenProvider(provider), extensions)
    if get("sasl.oauthbearer.token.endpoint.url"):
        return BearerLogin(_endpoint(get, options), extensions)
    handler = str(get("sasl.login.callback.handler.class") or "").rpartition(".")[2]
    if not handler and any(name.startswith("unsecuredLogin") for name in options):
        if "unsecuredLoginStringClaim_sub" not in options:
            raise ConfigError("An unsecured token needs the option unsecuredLoginStringClaim_sub, its user.")
        return BearerLogin(UnsecuredClaims(options), extensions)
    if handler and handler != _FETCHING:
        raise ConfigError(
            f"sasl.login.callback.handler.class names {handler}, a Java class, which cannot run here: "
            "use sasl.oauthbearer.token.endpoint.url, or give a function as sasl.oauth.token.provider."
        )
    raise ConfigError(
        "sasl.mechanism=OAUTHBEARER needs a source of tokens: set sasl.oauthbearer.token.endpoint.url with a "
        "client id and secret, or give a function as sasl.oauth.token.provider."
    )


def _endpoint(get: Get, options: Mapping[str, str]) -> TokenEndpoint:
    url = str(get("sasl.oauthbearer.token.endpoint.url"))
    client_id = (
        get("sasl.oauthbearer.client.credentials.client.id")
        or get("sasl.oauthbearer.client.id")
        or options.get("clientId", "")
    )
    secret = (
        get("sasl.oauthbearer.client.credentials.client.secret")
        or get("sasl.oauthbearer.client.secret")
        or options.get("clientSecret", "")
    )
    if not url.startswith(("https://", "http://", "file:")):
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url must begin with https:// (or file: for a token)."
        )
    if not url.startswith("file:") and not (client_id and secret):
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url needs a client id and secret: set "
            "sasl.oauthbearer.client.credentials.client.id and .secret."
        )
    tls = {name: value for name, value in options.items() if name.startswith("ssl.")}
    if get("https.ca.location"):
        tls |= {"ssl.truststore.location": get("https.ca.location"), "ssl.truststore.type": "PEM"}
    return TokenEndpoint(
        url,
        client_id,
        secret,
        get("sasl.oauthbearer.scope") or options.get("scope", ""),
        (get("sasl.login.connect.timeout.ms") or _TIMEOUT_MS) / 1000,
        (get("sasl.login.read.timeout.ms") or _TIMEOUT_MS) / 1000,
        tls,
    )


def _pairs(text: str | None) -> dict[str, str]:
    pairs = [item.partition("=") for item in (text or "").split(",") if item.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}
