"""The pages by name, and their content security policy."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_STATIC: Final = Path(__file__).parent / "static"
_HTML, _CODE, _STYLE = (
    "text/html; charset=utf-8",
    "text/javascript; charset=utf-8",
    "text/css; charset=utf-8",
)
# Name in the URL below /ui/ -> file, media type.
PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "review": ("review.html", _HTML),
    "review.js": ("review.js", _CODE),
    "elements.js": ("elements.js", _CODE),
    "review.css": ("review.css", _STYLE),
}
SIGN_IN_PAGE: Final = ""  # path of the page that takes a code; "" = there is none
# Own script and style only, requests to this API only, and no text becomes markup (CSP Level 3;
# Trusted Types).
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)


@cache
def read_page(name: str) -> tuple[bytes, str] | None:
    """Bytes and media type; None for an unknown name."""
    if name not in PAGES:
        return None
    file, media_type = PAGES[name]
    return (_STATIC / file).read_bytes(), media_type
