"""Interprets responses of a Solid server: object metadata, errors, and capability headers."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.pods import PodMeta
from agentbox.core.slot_errors import (
    ERRORS,
    AdapterError,
    ContainerNotEmpty,
    NotFound,
    PatchFailed,
    PreconditionFailed,
    QuotaExceeded,
    UnsupportedPatch,
    ValidationError,
    from_problem,
)
from agentbox.manifest.declarations.options import Options

CONTAINER_TYPE = "text/turtle"  # the type of containers (Linked Data Platform 5.2.1)
_RANGE = re.compile(r"bytes (\d+)-")
_LINK = re.compile(r"<([^>]*)>\s*((?:;[^,<]*)*)")
_REL = re.compile(r';\s*rel\s*=\s*"?([^";]+)"?', re.IGNORECASE)
# invalid requests, if the response has no known problem code
_INVALID_STATUSES = {
    400,
    405,
    409,
    414,
    415,
    416,
    422,
    431,
    501,
}
_CODES = {507: QuotaExceeded.code}


def pod_meta(path: str, response: httpx.Response, size: int | None = None) -> PodMeta:
    """Return the metadata from a GET or HEAD response; `size` is used if the headers have none."""
    length = response.headers.get("content-range", "").rpartition("/")[2] or response.headers.get(
        "content-length", ""
    )
    is_container = path.endswith("/")
    return PodMeta(
        path=path,
        kind="container" if is_container else "object",
        size=None if is_container else int(length) if length.isdecimal() else size,
        content_type=CONTAINER_TYPE if is_container else response.headers.get("content-type", ""),
        etag=None if is_container else response.headers.get("etag"),
        modified_at=last_modified(response.headers),
    )


def range_start(response: httpx.Response) -> int:
    """Return the offset of the body in the object."""
    match = _RANGE.match(response.headers.get("content-range", ""))
    return int(match[1]) if match and response.status_code == httpx.codes.PARTIAL_CONTENT else 0


def last_modified(headers: Mapping[str, str]) -> datetime:
    """Return `Last-Modified` (in whole seconds), else the time of the response."""
    for name in ("last-modified", "date"):
        try:
            return parsedate_to_datetime(headers[name]).astimezone(UTC)
        except (KeyError, ValueError):
            continue
    return datetime.now(UTC).replace(microsecond=0)


def is_strong(etag: str | None) -> bool:
    """A tag without `W/` is strong."""
    return etag is not None and not etag.startswith("W/")


def parse_links(headers: httpx.Headers) -> list[tuple[str, str]]:
    """Return relation and target of each `Link` header (RFC 8288), unchanged."""
    matches = _LINK.findall(", ".join(headers.get_list("link")))
    return [
        (rel, target)
        for target, parameters in matches
        for match in _REL.findall(parameters)
        for rel in match.split()
    ]


def media_types(headers: Mapping[str, str], name: str) -> frozenset[str]:
    """Return the media types of a list such as `Accept-Patch`, without parameters."""
    items = headers.get(name, "").split(",")
    return frozenset(kind for item in items if (kind := item.partition(";")[0].strip().lower()))


def is_agentbox_refusal(response: httpx.Response) -> bool:
    """Return whether the response is an error response of an agentbox."""
    return bool(_parse_problem(response.content).get("code") in ERRORS)


def refusal_error(
    cfg: SlotConfig[Options], response: httpx.Response, body: bytes, path: str
) -> AdapterError:
    """Return the error for an unsuccessful response. Its paths are those of this pod, not of the
    server."""
    problem, status, verb = _parse_problem(body), response.status_code, response.request.method
    code = problem.get("code")
    if status in (404, 410) and (code == NotFound.code or code not in ERRORS):
        return NotFound(f"cannot find {path}", resource="pod", id=path)
    if code == ContainerNotEmpty.code or (
        code not in ERRORS and status == 409 and verb == "DELETE"
    ):
        return ContainerNotEmpty(f"cannot delete {path}: it is not empty", path=path)
    retry_header = response.headers.get("retry-after", "")
    retry_after = float(retry_header) if retry_header.isdecimal() else None
    if code in ERRORS:
        return from_problem(problem, status, retry_after=retry_after)
    message = f"cannot serve {path or 'the root container'}: the server responded {status}"
    if status == 412:
        return PreconditionFailed(
            f"cannot change {path}: the object does not match the condition", etag=None
        )
    if verb == "PATCH" and status in (415, 501):
        return UnsupportedPatch(
            message, supported=sorted(media_types(response.headers, "accept-patch"))
        )
    if verb == "PATCH" and status in (409, 422):
        return PatchFailed(
            f"cannot patch {path}: it removes what does not exist", index=None, op=""
        )
    if status in _INVALID_STATUSES:
        return ValidationError(
            message, errors=[{"pointer": "/path", "detail": f"is refused by the server ({status})"}]
        )
    generic_problem = {
        "detail": message,
        "slot": cfg.slot,
        "impl": cfg.use,
        "code": _CODES.get(status),
    }
    return from_problem(generic_problem, status, retry_after=retry_after)


def _parse_problem(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
