"""W502: no lock file."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.unvalidated_lock import MISSING, UnvalidatedLock

CODE, SINCE = "W502", "0.1"
TITLE = "nothing is locked"
REASON = """\
Without a lock the next `up` installs current versions, and two boxes from one manifest may
differ."""
READS = ("image.source",)
BAD = ""
GOOD = ""
CONTEXT = {
    "bad": {"lock": MISSING},
    "good": {"lock": UnvalidatedLock(present=True), "features": {}},
}


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if (
        context["image.source"] == "debian"
        and context.lock is not None
        and not context.lock.present
    ):
        yield context.finding(
            "image.source",
            message="agentbox.lock not found: the next `up` would install current versions",
            remedy="Run `agentbox lock` and keep the file beside the manifest.",
        )
