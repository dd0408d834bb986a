"""Codes that are no rule and never will be: retired or barred, why, and what took their place.

The three digits are used once, whatever the letter. `RELEASED` lists every code of an earlier release.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Retired:
    """Why a code is not in use, and the code to look at instead."""

    reason: str
    successor: str = ""


RETIRED: Final[dict[str, Retired]] = {
    "E009": Retired("reserved: a missing credential is E017", "E017"),
    "E021": Retired("the number belongs to a warning", "W021"),
    "E030": Retired("the number belongs to a warning", "W030"),
}

RELEASED: Final[tuple[str, ...]] = ()
"""Codes that a release has shown to users; each must stay a rule or be retired above."""
