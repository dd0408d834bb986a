"""Problem documents (RFC 9457): error codes of the API, and the headers that belong to them."""

from collections.abc import Mapping
from typing import Any

from agentbox.core.slot_errors import (
    PROBLEM,
    REQUEST,
    AdapterError,
    PreconditionFailed,
    UnsupportedPatch,
    ValidationError,
)

MEDIA_TYPE = "application/problem+json"


class Unauthenticated(AdapterError):
    """A missing or unknown credential. `rule` says what was expected."""

    code, status, names = "unauthenticated", 401, ("rule",)


class MethodNotAllowed(AdapterError):
    code, status, names = "method-not-allowed", 405, ("allow",)


class NotAcceptable(AdapterError):
    code, status, names = "not-acceptable", 406, ("offered",)


class UnsupportedMediaType(AdapterError):
    code, status, names = "unsupported-media-type", 415, ("accepted",)


class Misdirected(AdapterError):
    """`Host` names another server, as after DNS rebinding in a browser."""

    code, status = "misdirected-request", 421


class TooBusy(AdapterError):
    """All connections that are not reserved for probes are in use."""

    code, status, retryable = "too-many-connections", 503, True


class Conflict(AdapterError):
    """The changed keys of the manifest need more than the API can apply at run time."""

    code, status, names = "needs-more-than-live", 409, ("keys",)


class RangeNotSatisfiable(AdapterError):
    """The requested range lies outside the object, which has `size` bytes."""

    code, status, names = "range-not-satisfiable", 416, ("size",)


def invalid(pointer: str, detail: str) -> ValidationError:
    """A ValidationError for one location in the request."""
    return ValidationError(
        f"cannot use {pointer or 'the request'}: {detail}",
        errors=[{"pointer": pointer, "detail": detail}],
    )


def internal_problem(request_id: str) -> Mapping[str, Any]:
    """The problem of a bug: it tells nothing but the request id."""
    return {
        "type": PROBLEM + "internal",
        "title": "Internal",
        "status": 500,
        "detail": "internal error; see the log",
        "instance": REQUEST + request_id,
        "code": "internal",
        "retryable": False,
    }


def problem_headers(error: AdapterError) -> tuple[tuple[str, str], ...]:
    """The headers that the response to this error must have."""
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
