"""Named types of single subjects: amounts, backups, HTTP, the network. Standard library only: the
boot imports this.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Pattern, TypeInfo

_MONEY = r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?"

Money = Annotated[
    str,
    TypeInfo(
        "money",
        "An amount of the currency of [cost], as text: digits, at most six of them after a point.",
        "an amount as text",
        '"2.50"',
    ),
    Pattern(f"^{_MONEY}$"),
]
MoneyOrNone = Annotated[
    str,
    TypeInfo(
        "money_or_none",
        'An amount of the currency of [cost], as text; "" for none.',
        "an amount as text",
        '"20"',
    ),
    Pattern(f"^$|^{_MONEY}$"),
]
Currency = Annotated[
    str,
    TypeInfo("currency", "The three capital letters of a currency.", "a currency", '"EUR"'),
    Pattern("^[A-Z]{3}$"),
]


def _cron_field(number: str) -> str:
    """A list of `*`, numbers and ranges, each with a step."""
    part = rf"(\*|{number}(-{number})?)(/[1-9][0-9]?)?"
    return f"{part}(,{part})*"


_CRON = (
    "^$|^"
    + " ".join(
        _cron_field(number)
        for number in (
            "[1-5]?[0-9]",
            "(1?[0-9]|2[0-3])",
            "([1-9]|[12][0-9]|3[01])",
            "([1-9]|1[0-2])",
            "[0-6]",
        )
    )
    + "$"
)
Cron = Annotated[
    str,
    TypeInfo(
        "cron",
        'Five fields of cron, in UTC: minute, hour, day of month, month, day of week; "" for '
        "never.",
        "five fields of cron",
        '"30 3 * * *"',
    ),
    Pattern(_CRON),
]
Recipient = Annotated[
    str,
    TypeInfo(
        "recipient",
        "A public key of age, or one of ssh: age1..., ssh-ed25519 ....",
        "a public key of age or ssh-ed25519",
        f'"age1{"q" * 58}"',
    ),
    Pattern(
        "^age1[02-9ac-hj-np-z]{58}$|^ssh-ed25519 AAAA[A-Za-z0-9+/]{64}"
        r"( [^\u0000-\u001f\u007f]{0,128})?$"
    ),
]

RemoteRepository = Annotated[
    str,
    TypeInfo(
        "remote_repository",
        'The address of a repository as restic writes it: sftp:, s3: or rest:; "" for none.',
        "an address sftp:, s3: or rest:",
        '"sftp:box@backups.example:/srv/box"',
    ),
    Pattern("^$|^(sftp|s3|rest):[!-~]{1,512}$"),
]
SshHostKey = Annotated[
    str,
    TypeInfo(
        "ssh_host_key",
        'The public key of a host, as in known_hosts, without its name; "" for none.',
        "a public key of a host",
        f'"ssh-ed25519 AAAA{"A" * 64}"',
    ),
    Pattern("^$|^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256) AAAA[A-Za-z0-9+/]{64,1024}={0,2}$"),
]
StorageVariable = Annotated[
    str,
    TypeInfo(
        "storage_variable",
        "A variable with a credential that restic reads for s3: or rest:.",
        "AWS_... or RESTIC_REST_...",
        '"AWS_ACCESS_KEY_ID"',
    ),
    Pattern("^(AWS|RESTIC_REST)_[A-Z][A-Z0-9_]{0,63}$"),
]

HeaderName = Annotated[
    str,
    TypeInfo("header_name", "The name of an HTTP header.", "the name of a header", '"X-Region"'),
    Pattern("^[A-Za-z][A-Za-z0-9-]{0,63}$"),
]
HeaderValue = Annotated[
    str,
    TypeInfo(
        "header_value",
        'Printable ASCII without a space at either end; "" for none.',
        "the value of a header",
        '"eu-west"',
    ),
    Pattern("^$|^[!-~]([ -~]{0,1022}[!-~])?$"),
]
HttpPath = Annotated[
    str,
    TypeInfo(
        "http_path",
        "A path of an HTTP request, with * for any run of characters.",
        "a path of a request",
        '"/v1/*"',
    ),
    Pattern(r"^/[^\s?#\u0000-\u001f\u007f]{0,1023}$"),
]


PATH = r"^/$|^(/(?!\.{1,2}(/|$))[^/\u0000-\u001f\u007f]+)+$"
_LABEL = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
HOST = (
    rf"((\*|(\*\.)?{_LABEL}(\.{_LABEL})*)|[0-9]{{1,3}}(\.[0-9]{{1,3}}){{3}}(/[0-9]{{1,2}})?|"
    r"\[[0-9A-Fa-f:.]{2,45}(/[0-9]{1,3})?\](/[0-9]{1,3})?)"
)

HostPath = Annotated[
    str,
    TypeInfo(
        "host_path",
        'An absolute, normalised path of this host; "" for none.',
        "an absolute path",
        '"/etc/ssl/corp.pem"',
    ),
    Pattern(f"^$|{PATH}"),
]
NetHost = Annotated[
    str,
    TypeInfo(
        "net_host",
        "A host, *.host, IP or CIDR, at any port. IPv6 stands in brackets.",
        "a host, *.host, IP or CIDR",
        '"*.corp.example"',
    ),
    Pattern(f"^{HOST}$"),
]

_SCP = re.compile(r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9._-]+):(?P<path>.+)")
_USER = re.compile(r"[A-Za-z0-9._-]*")
_ADDRESS = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_PORTS = {"sftp": 22, "http": 80, "https": 443}


@frozen
class RepositoryAddress:
    """`scheme` is sftp, s3 or rest; `user` that of ssh."""

    scheme: str
    host: str
    port: int
    user: str = ""


def parse_address(text: str) -> RepositoryAddress | None:
    """None for what is not an address of a host, and for one that contains a password."""
    scheme, _, rest = text.partition(":")
    if scheme == "sftp" and not rest.startswith("//"):
        found = _SCP.fullmatch(rest)
        if found is None or found["user"].startswith("-") or found["host"].startswith("-"):
            return None
        return RepositoryAddress(
            scheme=scheme, host=found["host"], port=_PORTS["sftp"], user=found["user"]
        )
    if scheme == "s3" and "://" not in rest:
        rest = f"https://{rest}"
    try:
        parts = urlsplit(f"sftp:{rest}" if scheme == "sftp" else rest)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    host, user = parts.hostname or "", parts.username or ""
    if port is None or not _ADDRESS.fullmatch(host) or host.startswith("-") or parts.password:
        return None
    if (scheme == "sftp") != bool(user) or not _USER.fullmatch(user) or user.startswith("-"):
        return None
    return RepositoryAddress(scheme=scheme, host=host, port=port, user=user)
