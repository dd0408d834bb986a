"""E011: the corpus has no such skill."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.manifest.suggest import nearest
from agentbox.policy.patterns import globs

CODE, SINCE = "E011", "0.1"
TITLE = "unknown skill"
WHY = """A name that matches nothing selects or leaves out nothing, most often because it is misspelt."""
READS = ("skills.corpus.include", "skills.corpus.exclude")
BAD = """
[skills.corpus]
include = ["git-histroy"]
"""
GOOD = """
[skills.corpus]
include = ["git-*"]
"""


def check(view: View) -> Iterator[Finding]:
    """One finding an entry."""
    for key in ("skills.corpus.include", "skills.corpus.exclude"):
        for text in view[key] if view.written(key) else ():
            if text == "*" or any(globs.matches(text, name) for name in view.skills):
                continue
            near = nearest(text, view.skills)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(sorted(view.skills))}."
            yield view.finding(key, message=f'the corpus has no skill "{text}"', remedy=f"{hint} Mend {key}.")
