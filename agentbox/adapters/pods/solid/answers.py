"""What the answers of a Solid server mean: an object's meta, a refusal, the headers that tell what the server can."""

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

CONTAINER_TYPE = "text/turtle"  # what a container is served as (Linked Data Platform 5.2.1)
_RANGE = re.compile(r"bytes (\d+)-")
_LINK = re.compile(r"<([^>]*)>\s*((?:;[^,<]*)*)")
_REL = re.compile(r';\s*rel\s*=\s*"?([^";]+)"?', re.IGNORECASE)
_REFUSED = {400, 405, 409, 414, 415, 416, 422, 431, 501}  # of what was asked, where the server says no more
_CODES = {507: QuotaExceeded.code}


def meta_of(path: str, response: httpx.Response, size: int | None = None) -> PodMeta:
    """What an answer to GET or HEAD says of an object or a container; `size` where its headers do not say it."""
    told = response.headers.get("content-range", "").rpartition("/")[2] or response.headers.get("content-length", "")
    is_container = path.endswith("/")
    return PodMeta(
        path=path, kind="container" if is_container else "object",
        size=None if is_container else int(told) if told.isdecimal() else size,
        content_type=CONTAINER_TYPE if is_container else response.headers.get("content-type", ""),
        etag=None if is_container else response.headers.get("etag"), modified_at=modified(response.headers),
    )  # fmt: skip


def begin_of(response: httpx.Response) -> int:
    """The first byte of the object that the body has."""
    told = _RANGE.match(response.headers.get("content-range", ""))
    return int(told[1]) if told and response.status_code == httpx.codes.PARTIAL_CONTENT else 0


def modified(headers: Mapping[str, str]) -> datetime:
    """`Last-Modified`, to the second as HTTP has it; without it the time of the answer."""
    for name in ("last-modified", "date"):
        try:
            return parsedate_to_datetime(headers[name]).astimezone(UTC)
        except (KeyError, ValueError):
            continue
    return datetime.now(UTC).replace(microsecond=0)


def is_strong(etag: str | None) -> bool:
    """A tag without `W/` counts as strong."""
    return etag is not None and not etag.startswith("W/")


def links(headers: httpx.Headers) -> list[tuple[str, str]]:
    """Relation and target of each `Link` (RFC 8288), as they stand."""
    found = _LINK.findall(", ".join(headers.get_list("link")))
    return [(rel, target) for target, rest in found for match in _REL.findall(rest) for rel in match.split()]


def types_of(headers: Mapping[str, str], name: str) -> frozenset[str]:
    """The media types of a list such as `Accept-Patch`, without parameters."""
    listed = headers.get(name, "").split(",")
    return frozenset(kind for one in listed if (kind := one.partition(";")[0].strip().lower()))


def is_of_a_box(response: httpx.Response) -> bool:
    """Whether an answer is a refusal of an agentbox."""
    return bool(_problem(response.content).get("code") in ERRORS)


def refusal(cfg: SlotConfig, response: httpx.Response, body: bytes, path: str) -> AdapterError:
    """The error that an answer which is no success stands for. Paths in it are those of this pod, whatever the server's are."""
    problem, status, verb = _problem(body), response.status_code, response.request.method
    code = problem.get("code")
    if status in (404, 410) and (code == NotFound.code or code not in ERRORS):
        return NotFound(f"cannot find {path}", resource="pod", id=path)
    if code == ContainerNotEmpty.code or (code not in ERRORS and status == 409 and verb == "DELETE"):
        return ContainerNotEmpty(f"cannot delete {path}: it has members", path=path)
    wait = response.headers.get("retry-after", "")
    after = float(wait) if wait.isdecimal() else None
    if code in ERRORS:
        return from_problem(problem, status, retry_after=after)
    said = f"cannot serve {path or 'the root container'}: the server answers {status}"
    if status == 412:
        return PreconditionFailed(f"cannot change {path}: what is there is not what was asked for", etag=None)
    if verb == "PATCH" and status in (415, 501):
        return UnsupportedPatch(said, supported=sorted(types_of(response.headers, "accept-patch")))
    if verb == "PATCH" and status in (409, 422):
        return PatchFailed(f"cannot patch {path}: what it takes away is not there", index=None, op="")
    if status in _REFUSED:
        return ValidationError(said, errors=[{"pointer": "/path", "detail": f"is refused by the server ({status})"}])
    stands_for = {"detail": said, "slot": cfg.slot, "impl": cfg.use, "code": _CODES.get(status)}
    return from_problem(stands_for, status, retry_after=after)


def _problem(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
