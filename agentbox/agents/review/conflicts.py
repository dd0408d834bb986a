"""Why a review was not applied."""

from typing import Final

from agentbox.core.visible_text import escape_invisible

MAX_LISTED: Final = 100  # conflicts in a response


class Conflicts(Exception):
    """Paths of the workspace that differ from the start of the branch, with reasons. Nothing was
    applied except `preserved`: paths that were written to meanwhile, and where the previous file of
    each is ("" for none)."""

    def __init__(self, reasons: dict[str, str], preserved: dict[str, str] | None = None) -> None:
        super().__init__(f"{len(reasons)} conflicts")
        self.reasons, self.preserved = reasons, preserved or {}

    def outcome(self) -> str:
        """What was applied, for people."""
        if not self.preserved:
            return "nothing was applied"
        preserved = [
            f"{escape_invisible(path)} (previous file: {previous})"
            if previous
            else escape_invisible(path)
            for path, previous in self.preserved.items()
        ]
        return (
            f"concurrent changes are kept: {', '.join(preserved[:MAX_LISTED])}; "
            "nothing else was applied"
        )
