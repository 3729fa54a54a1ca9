"""Subjects of certificates as texts, and the rules that make principals of them."""

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from tests.support.certificates import Authority

from barnabas.security.key_stores import TlsError
from barnabas.security.subjects import parse_rules, principal_of, subject_of

SUBJECT = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", SUBJECT),
        ("", None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", "DUKE"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L, DEFAULT", "duke@serviceusers"),
        ("RULE:^cn=(.*?)$/$1/, RULE:^CN=([^,]*),.*$/$1/,DEFAULT", "Duke"),
        ("RULE:^UID=(.*)$/$1/,DEFAULT", SUBJECT),
        ("RULE:^UID=(.*)$/$1/", None),
        # Only a match of the whole subject counts.
        ("RULE:CN=([^,]*)/$1/,DEFAULT", SUBJECT),
        # A number that no group has stands for itself; a longer one is cut.
        ("RULE:^CN=([^,]*),.*$/$1-$4/", "Duke-$4"),
        ("RULE:^CN=([^,]*),.*$/$12/", "Duke2"),
        (r"RULE:^CN=([^,]*),.*$/\$1/", "$1"),
        (r"RULE:^CN=([^,]*),.*$/$1\/x/", "Duke/x"),
        (" DEFAULT , ", SUBJECT),
    ],
)
def test_mapping_rules(rules: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(TlsError, match="No rule"):
            principal_of(SUBJECT, rules)
    else:
        assert str(principal_of(SUBJECT, rules)) == f"User:{name}"


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/X",
        "RULE:CN=/",
        "RULE:^CN=((.*)$/$1/",
        "DEFAULT RULE:a/b/",
    ],
)
def test_malformed_rules(rules: str) -> None:
    with pytest.raises(TlsError, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(rules)


@given(st.text(alphabet="RULE:DFAT/\\,$1L^(.*) ab", max_size=40))
def test_any_text_is_a_rule_or_an_error(text: str) -> None:
    try:
        parse_rules(text)
    except TlsError:
        return


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def attribute(oid: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(oid, value)


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        # The last attribute comes first, as in RFC 2253.
        (
            [
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.ORGANIZATION_NAME, "Org"),
                (NameOID.COMMON_NAME, "alice"),
            ],
            "CN=alice,O=Org,C=DE",
        ),
        ([(NameOID.COMMON_NAME, 'a,b=c+d<e>f#g;h"i\\j')], r"CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j"),
        ([(NameOID.COMMON_NAME, " two  blanks ")], "CN=\\ two  blanks\\ "),
        ([(NameOID.COMMON_NAME, "Zoë 日本")], "CN=Zoë 日本"),
        (
            [(NameOID.DOMAIN_COMPONENT, "example"), (NameOID.USER_ID, "u1"), (NameOID.STREET_ADDRESS, "s")],
            "STREET=s,UID=u1,DC=example",
        ),
        # An attribute without a name in RFC 2253: its OID, and the value's bytes.
        (
            [(NameOID.COMMON_NAME, "a"), (NameOID.EMAIL_ADDRESS, "a@b.c")],
            "1.2.840.113549.1.9.1=#1605" + b"a@b.c".hex() + ",CN=a",
        ),
    ],
)
def test_subjects(
    authority: Authority, attributes: list[tuple[x509.ObjectIdentifier, str]], text: str
) -> None:
    name = x509.Name([attribute(oid, value) for oid, value in attributes])
    assert subject_of(authority.named(name).der) == text


def test_two_attributes_in_one_relative_name(authority: Authority) -> None:
    together = x509.RelativeDistinguishedName(
        [attribute(NameOID.COMMON_NAME, "a"), attribute(NameOID.USER_ID, "b")]
    )
    name = x509.Name([x509.RelativeDistinguishedName([attribute(NameOID.ORGANIZATION_NAME, "O")]), together])
    assert subject_of(authority.named(name).der) in ("CN=a+UID=b,O=O", "UID=b+CN=a,O=O")


@given(st.text(min_size=1, max_size=60).filter(lambda text: "\0" not in text))
def test_any_name_reads_back(text: str) -> None:
    """The text of a subject means one subject only: a comma in a name does not forge another one."""
    try:
        name = x509.Name([attribute(NameOID.ORGANIZATION_NAME, "Org"), attribute(NameOID.COMMON_NAME, text)])
        name.public_bytes()
    except ValueError:
        return
    subject = subject_of(AUTHORITY.named(name).der)
    assert x509.Name.from_rfc4514_string(subject) == name


AUTHORITY = Authority()


def test_a_damaged_certificate() -> None:
    with pytest.raises(TlsError):
        subject_of(b"\x30\x03\x02\x01\x01")
