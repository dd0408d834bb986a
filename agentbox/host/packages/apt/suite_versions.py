"""Python and C library of each Debian suite, for choosing wheels. Source: the package records of
the suites.
"""

from dataclasses import dataclass

from agentbox.host.packages.errors import ResolveError


@dataclass(frozen=True)
class SuiteVersions:
    """`python` is `major.minor`; `glibc_minor` is that of glibc 2.x."""

    name: str
    python: str
    glibc_minor: int


_SUITES = {
    suite.name: suite
    for suite in (SuiteVersions("bookworm", "3.11", 36), SuiteVersions("trixie", "3.13", 41))
}


def suite_by_name(name: str) -> SuiteVersions:
    """Raises ResolveError (exit 5) for an unknown suite."""
    if name not in _SUITES:
        raise ResolveError(
            f"cannot lock for suite {name}: supported are {' and '.join(sorted(_SUITES))}",
            "Set image.suite to one of them.",
        )
    return _SUITES[name]
