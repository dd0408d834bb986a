"""Addresses of repositories: the host and the port that a box may connect to, or none."""

import pytest

from agentbox.manifest.named_types import RepositoryAddress, parse_address


def address(scheme: str, host: str, port: int, user: str = "") -> RepositoryAddress:
    return RepositoryAddress(scheme=scheme, host=host, port=port, user=user)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sftp:box@backups.example:/srv/box", address("sftp", "backups.example", 22, "box")),
        ("sftp://box@[::1]:2222//srv/box", address("sftp", "::1", 2222, "box")),
        ("s3:https://s3.example/bucket/box", address("s3", "s3.example", 443)),
        ("s3:http://10.0.0.7:9000/bucket", address("s3", "10.0.0.7", 9000)),
        ("s3:s3.example/bucket", address("s3", "s3.example", 443)),
        ("rest:https://backups.example:8000/", address("rest", "backups.example", 8000)),
    ],
)
def test_addresses(text: str, expected: RepositoryAddress) -> None:
    """As restic writes them."""
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "sftp:backups.example:/srv/box",
        "sftp:-oProxyCommand=id@host:/x",
        "sftp:box@-oProxyCommand=id:/x",
        "sftp://-oProxyCommand=id@host/x",
        "sftp://host/x",
        "rest:https://box:word@backups.example/",
        "rest:https://box@backups.example/",
        "rest:https://host:port/",
        "rest:ftp://host/",
        "rest:",
        "s3:",
        "",
    ],
)
def test_what_is_not_one(text: str) -> None:
    """No host, a password, and what ssh would take for an option."""
    assert parse_address(text) is None
