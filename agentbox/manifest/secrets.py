"""What looks like a credential or like a placeholder. Used where a value might be shown or must not be there."""

import re
from typing import Final

# Prefixes that their issuers document, each with the least length of what follows. A text may be as long as a manifest: a
# run of letters is entered at its beginning alone, and given up as a whole.
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
        r"(?<![\w-])(?>[A-Za-z0-9_-]*?eyJ(?=[A-Za-z0-9_-]{8}))[A-Za-z0-9_-]*+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8}",  # JWT
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"(?<![a-z0-9])nsec1[02-9ac-hj-np-z]{50,}",
        r"(?<![A-Za-z0-9+.-])[0-9+.-]*[A-Za-z][A-Za-z0-9+.-]*+://[^\s/?#@:]*:[^\s/?#@]+@",  # a URL with a password
    )
)
_PLACEHOLDER: Final = re.compile(
    r"change-?me|change-this.*|your-.*-here|placeholder|todo.*|replace-?me|xxx.*|<.*>",
    re.IGNORECASE | re.DOTALL,
)


def is_credential(text: str) -> bool:
    """True for text that holds a known token form, a private key, or a URL with a password."""
    return any(pattern.search(text) for pattern in _CREDENTIALS)


def is_placeholder(text: str) -> bool:
    """True for text that is, as a whole and case ignored, something that was meant to be replaced."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None
