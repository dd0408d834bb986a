"""JSON Patch (RFC 6902) on the bytes of an object, all or nothing."""

import json
from typing import Any

import jsonpatch
import jsonpointer

from agentbox.adapters.runtime.input_checks import check_json
from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import PatchFailed, UnsupportedPatch

JSON_PATCH = "application/json-patch+json"
SUPPORTED = (JSON_PATCH,)
MAX_OPERATIONS = 1000


def parse_operations(patch: bytes, patch_type: str) -> list[dict[str, Any]]:
    """Return the operations. Raises UnsupportedPatch for another type, ValidationError for an
    invalid patch."""
    if essence(patch_type) != JSON_PATCH:
        raise unsupported_patch(f"cannot apply a patch of type {essence(patch_type)}")
    parsed = _parse_json(patch)
    if not isinstance(parsed, list) or not all(isinstance(item, dict) for item in parsed):
        raise invalid_value("/patch", "must be an array of operations")
    if len(parsed) > MAX_OPERATIONS:
        raise invalid_value("/patch", f"has more than {MAX_OPERATIONS} operations")
    return parsed


def apply_patch(body: bytes, content_type: str, patch_operations: list[dict[str, Any]]) -> bytes:
    """Return the patched body. Raises UnsupportedPatch if the object is not JSON, PatchFailed with
    the operation's index."""
    kind = essence(content_type)
    if kind != "application/json" and not kind.endswith("+json"):
        raise unsupported_patch(f"cannot patch an object of type {kind} with JSON Patch")
    try:
        document = read_json(body)
    except ValueError:
        raise unsupported_patch("cannot patch the object: its body is not valid JSON") from None
    for index, operation in enumerate(patch_operations):
        try:
            document = jsonpatch.JsonPatch([operation]).apply(document)
        except (
            jsonpatch.JsonPatchException,
            jsonpointer.JsonPointerException,
            TypeError,
            KeyError,
        ) as error:
            op = str(operation.get("op"))[:32]
            raise PatchFailed(
                f"cannot apply operation {index}: {type(error).__name__}", index=index, op=op
            ) from None
    check_json(document, "/patch")
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def essence(content_type: str) -> str:
    """Return the media type without parameters, in lower case."""
    return content_type.split(";")[0].strip().lower()


def unsupported_patch(detail: str) -> UnsupportedPatch:
    return UnsupportedPatch(detail, supported=list(SUPPORTED))


def _parse_json(patch: bytes) -> Any:
    try:
        return read_json(patch)
    except ValueError:
        raise invalid_value("/patch", "is not valid JSON") from None
