"""W502: there is no lock."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.manifest.rules.lock_input import MISSING, LockInput

CODE, SINCE = "W502", "0.1"
TITLE = "nothing is locked"
WHY = """Without a lock the next `up` takes what the mirrors serve that day, and two boxes from one manifest may
differ."""
READS = ("image.source",)
BAD = ""
GOOD = ""
CONTEXT = {"bad": {"lock": MISSING}, "good": {"lock": LockInput(present=True), "features": {}}}


def check(view: View) -> Iterator[Finding]:
    """At most one finding."""
    if view["image.source"] == "debian" and view.lock is not None and not view.lock.present:
        yield view.finding(
            "image.source",
            message="there is no agentbox.lock: the next `up` takes what the mirrors serve that day",
            remedy="Run `agentbox lock` and keep the file beside the manifest.",
        )
