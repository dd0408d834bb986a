"""E011: an unknown skill."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.suggest import suggest_names
from agentbox.policy.patterns import globs

CODE, SINCE = "E011", "0.1"
TITLE = "unknown skill"
REASON = "A name that matches nothing has no effect; most often it is misspelt."
READS = ("skills.corpus.include", "skills.corpus.exclude", "skills.corpus.paths")
BAD = """
[skills.corpus]
include = ["git-histroy"]
"""
GOOD = """
[skills.corpus]
include = ["git-*"]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per entry. With folders of its own a manifest has names that no rule knows."""
    if context["skills.corpus.paths"]:
        return
    for key in ("skills.corpus.include", "skills.corpus.exclude"):
        for text in context[key] if context.is_written(key) else ():
            if text == "*" or any(globs.matches(text, name) for name in context.skills):
                continue
            suggestions = suggest_names(text, context.skills)
            hint = (
                f"Did you mean {' or '.join(suggestions)}?"
                if suggestions
                else f"Available: {', '.join(sorted(context.skills))}."
            )
            yield context.finding(
                key, message=f'the corpus has no skill "{text}"', remedy=f"{hint} Fix {key}."
            )
