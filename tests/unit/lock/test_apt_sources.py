"""Which of a host's apt sources is the Debian mirror."""

import pytest

from agentbox.host.packages.apt import apt_sources
from agentbox.host.packages.apt.apt_sources import Source, host_mirror, parse_sources
from agentbox.host.packages.errors import PrerequisiteError

DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://mirror.example.invalid/debian
Suites: bookworm
Components: main

Enabled: no
Types: deb
URIs: http://off.example.invalid/debian
Suites: bookworm
Components: main
"""
ONE_LINE = """\
# deb http://comment.example.invalid/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://other.example.invalid/apt bookworm main # with a key of its own
deb-src http://mirror.example.invalid/debian bookworm main
deb http://mirror.example.invalid/debian bookworm main
deb http://mirror.example.invalid/debian-security bookworm-security main
"""


def test_deb822_stanzas() -> None:
    """Active binary stanzas only; sources, comments and disabled stanzas are ignored."""
    (found,) = parse_sources(DEB822, deb822=True)
    assert found.uris == ("http://mirror.example.invalid/debian",)
    assert found.suites == ("bookworm", "bookworm-updates")
    assert found.is_debian
    assert not found.is_security


def test_one_line_entries() -> None:
    """Options, comments and source entries are parsed."""
    found = parse_sources(ONE_LINE, deb822=False)
    assert [source.signed_by for source in found] == ["/k.gpg", "", ""]
    assert [source.is_security for source in found] == [False, False, True]


def test_a_key_block_is_kept() -> None:
    """A key inside the stanza is kept with it."""
    block = "Types: deb\nURIs: http://m.example.invalid/debian\nSuites: trixie\nComponents: main\nSigned-By:\n BEGIN\n .\n END\n"
    (found,) = parse_sources(block, deb822=True)
    assert found.signed_by.split() == ["BEGIN", ".", "END"]


def test_others_under_debian_names_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third party that publishes under Debian's suite names with its own key is not treated as
    Debian."""
    monkeypatch.setattr(apt_sources, "host_sources", lambda: parse_sources(ONE_LINE, deb822=False))
    mirror = host_mirror()
    assert mirror.main.uris == ("http://mirror.example.invalid/debian",)
    assert mirror.security is not None
    assert mirror.security.uris == ("http://mirror.example.invalid/debian-security",)


@pytest.mark.parametrize(
    "source",
    [
        Source(("http://u.example.invalid/ubuntu",), ("noble",), ("main",)),
        Source(("http://d.example.invalid/linux/debian",), ("bookworm",), ("stable",)),
    ],
)
def test_no_debian_mirror(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    """Other distributions and components are no Debian mirror: exit 3."""
    monkeypatch.setattr(apt_sources, "host_sources", lambda: [source])
    with pytest.raises(PrerequisiteError, match="no Debian mirror is configured for apt") as caught:
        host_mirror()
    assert caught.value.exit_code == 3
