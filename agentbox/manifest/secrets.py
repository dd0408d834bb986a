"""Detects credentials and placeholders, in values that may be displayed or are not allowed."""

import re
from typing import Final

# Documented prefixes, with the minimum length of the rest. For linear time in long texts, a run of
# letters is tried at its start only, and skipped as a whole.
_CREDENTIALS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}",  # model vendors
        r"(?<![A-Za-z0-9])(ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{30,}",
        r"github_pat_[A-Za-z0-9_]{30,}",
        r"glpat-[A-Za-z0-9_-]{16,}",
        r"(?<![A-Z0-9])(AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
        r"AIza[A-Za-z0-9_-]{35}",
        r"xox[abprs]-[A-Za-z0-9-]{10,}",
        r"(?<![A-Za-z0-9])(npm|hf)_[A-Za-z0-9]{30,}",
        r"pypi-[A-Za-z0-9_-]{50,}",
        r"(?<![A-Za-z0-9])(sk|rk)_(live|test)_[A-Za-z0-9]{16,}",
        r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}",  # chat bots
        # JWT
        (
            r"(?<![\w-])(?>[A-Za-z0-9_-]*?eyJ(?=[A-Za-z0-9_-]{8}))[A-Za-z0-9_-]*+"
            r"\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8}"
        ),
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"(?<![a-z0-9])nsec1[02-9ac-hj-np-z]{50,}",
        # a URL with a password
        r"(?<![A-Za-z0-9+.-])[0-9+.-]*[A-Za-z][A-Za-z0-9+.-]*+://[^\s/?#@:]*:[^\s/?#@]+@",
    )
)
_PLACEHOLDER: Final = re.compile(
    r"change-?me|change-this.*|your-.*-here|placeholder|todo.*|replace-?me|xxx.*|<.*>",
    re.IGNORECASE | re.DOTALL,
)


def is_credential(text: str) -> bool:
    """True if the text contains a known token format, a private key, or a URL with a password."""
    return any(pattern.search(text) for pattern in _CREDENTIALS)


def is_placeholder(text: str) -> bool:
    """True if the whole text is a placeholder, ignoring case."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None
