"""Codes that are not in use: retired or reserved, the reason, and the successor. The three digits
are unique, whatever the letter. `RELEASED` lists all codes of earlier releases.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Retired:
    """Why a code is not in use, and its successor."""

    reason: str
    successor: str = ""


RETIRED: Final[dict[str, Retired]] = {
    "E009": Retired("reserved: a missing credential is E017", "E017"),
    "E021": Retired("the number belongs to a warning", "W021"),
    "E030": Retired("the number belongs to a warning", "W030"),
}

RELEASED: Final[tuple[str, ...]] = ()
"""Codes in a release; each must stay a rule or be retired above."""
