"""Debian records, and dependents within a closure."""

from agentbox.host.packages.apt.apt_resolver import lock_entry, reachable
from agentbox.host.packages.apt.control import Package, parse_package, parse_paragraphs

RECORD = """\
Package: git
Version: 1:2.47.3-0+deb13u1
Architecture: amd64
Provides: git-core, git-completion (= 1)
Pre-Depends: libc6 (>= 2.38)
Depends: perl:any | perl5, libcurl3t64-gnutls (>= 7.56.1),
 git-man (>> 1:2.47.3)
Size: 42
SHA256: abcd
Description: fast
 long

Package: next
"""


def a(name: str, *depends: tuple[str, ...], provides: tuple[str, ...] = ()) -> Package:
    return Package(name, "1", "amd64", 1, "ab", depends, provides)


def test_a_record_is_read() -> None:
    """Dependencies keep alternatives and lose versions and qualifiers; continuation lines belong to
    their field.
    """
    first, second = parse_paragraphs(RECORD)
    found = parse_package(first)
    assert found.depends == (("libc6",), ("perl", "perl5"), ("libcurl3t64-gnutls",), ("git-man",))
    assert found.provides == ("git-core", "git-completion")
    assert (found.size, found.sha256) == (42, "abcd")
    assert second == {"Package": "next"}
    assert lock_entry(found).file == "git_1_2.47.3-0+deb13u1_amd64.deb"


def test_reached_follows_what_is_there() -> None:
    """Alternatives and virtual names lead to the packages of the closure; cycles end; other
    packages are left out.
    """
    closure = {
        found.name: found
        for found in (
            a("git", ("perl", "perl5"), ("awk",)),
            a("perl", ("perl-base",)),
            a("perl-base", ("perl",)),
            a("mawk", provides=("awk",)),
            a("lonely"),
        )
    }
    assert reachable(closure, ["git"]) == {"git", "perl", "perl-base", "mawk"}
    assert reachable(closure, ["awk"]) == {"mawk"}
    assert reachable(closure, ["absent"]) == frozenset()
