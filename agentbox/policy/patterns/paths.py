"""Paths (scopes fs and exec): `/usr/bin/git`, `$WORKSPACE/**`, `/opt/*/bin`, and in exec a bare
command name.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from agentbox.policy.patterns import globs
from agentbox.policy.patterns.base import PatternError

DIRECTORY_VARIABLES: Final = ("$WORKSPACE", "$TMP", "$TOOLCHAIN")
COMMAND: Final = "$COMMAND"
FS_FORM: Final = (
    "an absolute path, or one below $WORKSPACE, $TMP or $TOOLCHAIN; /** at the end means all below"
)
EXEC_FORM: Final = f"{FS_FORM}; or a bare command name, or $COMMAND"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class PathPattern:
    """`root` is "" for an absolute path, else a variable or a bare command name. `recursive`
    includes everything below. A segment may be a glob; a glob never matches a slash.
    """

    root: str
    segments: tuple[str, ...]
    recursive: bool = False

    @classmethod
    def parse(cls, text: str, *, exec_scope: bool) -> "PathPattern":
        """Raises PatternError."""
        form = EXEC_FORM if exec_scope else FS_FORM
        root, *segments = text.split("/")
        roots = (*DIRECTORY_VARIABLES, COMMAND) if exec_scope else DIRECTORY_VARIABLES
        is_command = exec_scope and not segments and _NAME.fullmatch(root) is not None
        if not text or (root and root not in roots and not is_command):
            raise PatternError(text, "must be an absolute path", form)
        if root == COMMAND and segments:
            raise PatternError(text, f"goes below {COMMAND}, which is one program", form)
        recursive = segments[-1:] == ["**"]
        names = segments[:-1] if recursive else [] if segments == [""] and not root else segments
        if reason := _invalid_reason(names):
            raise PatternError(text, reason, form)
        return cls(root, tuple(names), recursive)

    def __str__(self) -> str:
        tail = "".join(
            f"/{segment}" for segment in (*self.segments, *(("**",) if self.recursive else ()))
        )
        return f"{self.root}{tail}" or "/"

    @property
    def variable(self) -> str:
        """The variable that it starts with, or ""."""
        return self.root if self.root.startswith("$") else ""

    def matches(self, value: str) -> bool:
        """`value` is a normalised absolute path, or a path or command written with a root as in a
        pattern.
        """
        root, *segments = value.split("/")
        if segments == [""] and not root:
            segments = []
        has_root = (
            value.startswith("/") or root in DIRECTORY_VARIABLES or (not segments and bool(root))
        )
        if _invalid_reason(segments) or not has_root:
            return False
        if self._is_everything:
            return True
        if root != self.root or len(segments) < len(self.segments):
            return False
        depth_matches = self.recursive or len(segments) == len(self.segments)
        return depth_matches and all(map(globs.matches, self.segments, segments))

    def covers(self, other: "PathPattern") -> bool:
        """`/**` covers everything, since all roots are below it."""
        if self._is_everything:
            return True
        if self.root != other.root or len(self.segments) > len(other.segments):
            return False
        exact = not other.recursive and len(self.segments) == len(other.segments)
        return (self.recursive or exact) and all(map(globs.covers, self.segments, other.segments))

    def overlaps(self, other: "PathPattern") -> bool:
        """The value of a variable or a command is unknown before the start; only the three
        directory variables are known to be disjoint.
        """
        if self.root != other.root:
            return not (self.root in DIRECTORY_VARIABLES and other.root in DIRECTORY_VARIABLES)
        short, long = sorted((self, other), key=lambda pattern: len(pattern.segments))
        if len(short.segments) < len(long.segments) and not short.recursive:
            return False
        return all(map(globs.overlaps, short.segments, long.segments))

    def rebase(self, base: "PathPattern") -> "PathPattern":
        """Replaces the root by `base`: `$WORKSPACE/src/**` under `/workspace` is
        `/workspace/src/**`. Raises ValueError if `base` is more than one path, unless nothing
        follows the root.
        """
        if not self.segments and not self.recursive:
            return base
        if base.recursive and (self.segments or not self.recursive):
            raise ValueError(f"{base} is not a single path")
        return replace(base, segments=(*base.segments, *self.segments), recursive=self.recursive)

    @property
    def _is_everything(self) -> bool:
        return self.recursive and not self.root and not self.segments


def _invalid_reason(segments: list[str]) -> str:
    """Why these are not segments of a normalised path, or ""."""
    for segment in segments:
        if segment in ("", ".", ".."):
            return 'is not normalised: it has an empty part, "." or ".."'
        if "**" in segment:
            return "has ** elsewhere than at its end"
        if "\0" in segment or "$" in segment[:1]:
            return "has a variable after its start"
    return ""
