"""Problem documents (RFC 9457): the codes that the API alone has, and the answer to any error."""

from collections.abc import Mapping
from typing import Any

import structlog

from agentbox.api.http.reply import Reply
from agentbox.core.slot_errors import (
    PROBLEM,
    REQUEST,
    AdapterError,
    PreconditionFailed,
    UnsupportedPatch,
    ValidationError,
)

MEDIA_TYPE = "application/problem+json"
_log = structlog.get_logger()


class Unauthenticated(AdapterError):
    """No credential, or one that is unknown. `rule` says what was expected."""

    code, status, names = "unauthenticated", 401, ("rule",)


class MethodNotAllowed(AdapterError):
    code, status, names = "method-not-allowed", 405, ("allow",)


class NotAcceptable(AdapterError):
    code, status, names = "not-acceptable", 406, ("offered",)


class UnsupportedMediaType(AdapterError):
    code, status, names = "unsupported-media-type", 415, ("accepted",)


class Misdirected(AdapterError):
    """`Host` names another server: a page in a browser that was led here (DNS rebinding)."""

    code, status = "misdirected-request", 421


class TooBusy(AdapterError):
    """Every connection that is not kept for the probes is taken."""

    code, status, retryable = "too-many-connections", 503, True


class Conflict(AdapterError):
    """The manifest's changed keys need more than the API may do in place."""

    code, status, names = "needs-more-than-live", 409, ("keys",)


class RangeNotSatisfiable(AdapterError):
    """The range asked for lies outside the object, which has `size` bytes."""

    code, status, names = "range-not-satisfiable", 416, ("size",)


def invalid(pointer: str, detail: str) -> ValidationError:
    """A ValidationError about one place of the request."""
    return ValidationError(
        f"cannot use {pointer or 'the request'}: {detail}",
        errors=[{"pointer": pointer, "detail": detail}],
    )


def reply_for(error: Exception, request_id: str) -> Reply:
    """The answer to an error. One that is no AdapterError is a bug: 500 with the request id, and a traceback in the log."""
    if not isinstance(error, AdapterError):
        _log.error("request failed", request_id=request_id, exc_info=error)
        return Reply(_internal(request_id), status=500, media_type=MEDIA_TYPE)
    return Reply(
        error.to_problem(request_id),
        status=error.status,
        headers=_headers(error),
        media_type=MEDIA_TYPE,
    )


def _internal(request_id: str) -> Mapping[str, Any]:
    return {
        "type": PROBLEM + "internal",
        "title": "Internal",
        "status": 500,
        "detail": "a bug; the log has more",
        "instance": REQUEST + request_id,
        "code": "internal",
        "retryable": False,
    }


def _headers(error: AdapterError) -> tuple[tuple[str, str], ...]:
    if isinstance(error, Unauthenticated):
        return (("WWW-Authenticate", 'Bearer realm="agentbox"'),)
    if isinstance(error, MethodNotAllowed):
        return (("Allow", ", ".join(error.members["allow"])),)
    if isinstance(error, UnsupportedPatch):
        return (("Accept-Patch", ", ".join(error.members["supported"])),)
    if isinstance(error, RangeNotSatisfiable):
        return (("Content-Range", f"bytes */{error.members['size']}"),)
    if isinstance(error, PreconditionFailed) and error.members["etag"]:
        return (("ETag", error.members["etag"]),)
    if error.retryable and error.status in (429, 503):
        return (("Retry-After", str(max(1, round(error.retry_after or 1)))),)
    return ()
