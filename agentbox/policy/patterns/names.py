"""Names (scopes env, tool, llm, agent): `LC_*`, `git/*`, `openai/small-*`, `reviewer`, and
variables such as `$CHILDREN`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agentbox.policy.patterns import globs
from agentbox.policy.patterns.base import PatternError

_WORD: Final = r"[A-Za-z0-9_.-]+"
_AGENT: Final = r"[a-z][a-z0-9-]{0,31}"


@dataclass(frozen=True)
class NameForm:
    """The syntax of names in a scope; `variable` stands for a list of them from the agent's own
    table.
    """

    shape: re.Pattern[str]
    description: str
    variable: str = ""


FORMS: Final[Mapping[str, NameForm]] = {
    "env": NameForm(
        re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[A-Za-z_][A-Za-z0-9_]*_\*"),
        "a variable's name, PREFIX_*, or $ENV",
        "$ENV",
    ),
    "tool": NameForm(
        re.compile(rf"\*|{_WORD}(/{_WORD})*(/\*)?"), "a tool's name, group/*, $MCP, or *", "$MCP"
    ),
    "llm": NameForm(
        re.compile(rf"\*|{_AGENT}(/[^\s/]\S*)?"),
        "provider, provider/model with * and ?, $PROVIDER, or *",
        "$PROVIDER",
    ),
    "agent": NameForm(
        re.compile(rf"\*|{_AGENT}|[a-z][a-z0-9-]*-\*"),
        "an agent's name, prefix-*, $CHILDREN, or *",
        "$CHILDREN",
    ),
}


@dataclass(frozen=True)
class NamePattern:
    """`text` as written; `glob` is its meaning: a provider includes all of its models."""

    text: str
    glob: str

    @classmethod
    def parse(cls, scope: str, text: str) -> "NamePattern":
        """Raises PatternError."""
        form = FORMS[scope]
        if not text or (text != form.variable and not form.shape.fullmatch(text)):
            raise PatternError(text, f"is not a pattern of the scope {scope}", form.description)
        is_provider = scope == "llm" and "/" not in text and text != "*"
        return cls(text, f"{text}/*" if is_provider else text)

    def __str__(self) -> str:
        return self.text

    @property
    def variable(self) -> str:
        """`$ENV` or another variable, or ""."""
        return self.text if self.text.startswith("$") else ""

    def matches(self, value: str) -> bool:
        """`value` is a name; for a model `provider/model`."""
        return bool(value) and globs.matches(self.glob, value)

    def covers(self, other: "NamePattern") -> bool:
        """`*` also covers variables."""
        return globs.covers(self.glob, other.glob)

    def overlaps(self, other: "NamePattern") -> bool:
        """A variable may contain anything."""
        return bool(self.variable or other.variable) or globs.overlaps(self.glob, other.glob)
