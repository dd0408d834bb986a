"""E203: an exception that would remove protection."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.policy.protected_paths import baseline_violations

CODE, SINCE = "E203", "0.1"
TITLE = "exception undoes the baseline"
REASON = """Exceptions add what a feature needs; they never remove protection. All capabilities, no
seccomp profile, a mount over the system or an engine socket of the host would end the confinement
of the box."""
READS = (
    "security.exceptions",
    "security.exceptions.*.cap_add",
    "security.exceptions.*.seccomp",
    "security.exceptions.*.tmpfs",
    "security.exceptions.*.volumes",
)
BAD = """
[security.exceptions.desktop]
reason = "the display server wants it"
volumes = [{ source = "x", target = "/etc" }]
"""
GOOD = """
[security.exceptions.desktop]
reason = "the display server wants it"
volumes = [{ source = "x", target = "/var/lib/x" }]
"""
EACH = "security.exceptions"


_TABLE = "security.exceptions.*"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per field that violates the baseline."""
    remedy = (
        "Choose the narrower field or path that the feature needs: "
        "exceptions add, they never remove."
    )
    for field, message in _violations(context):
        yield context.finding(f"{_TABLE}.{field}", message=message, remedy=remedy)


def _violations(context: RuleContext) -> Iterator[tuple[str, str]]:
    fields = ("cap_add", "tmpfs", "volumes")
    yield from baseline_violations(**{field: context[f"{_TABLE}.{field}"] for field in fields})
    seccomp = context[f"{_TABLE}.seccomp"]
    if seccomp and seccomp not in context.seccomp_files:
        yield "seccomp", f'"{seccomp}" is not a file of config/seccomp/'
