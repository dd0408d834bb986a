"""JSON Patch (RFC 6902) on the bytes of an object, all of it or none."""

import json
from typing import Any

import jsonpatch
import jsonpointer

from agentbox.adapters.runtime.checks import check_json
from agentbox.core.records.json_input import read_json
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import PatchFailed, UnsupportedPatch

JSON_PATCH = "application/json-patch+json"
SUPPORTED = (JSON_PATCH,)
MAX_OPERATIONS = 1000


def operations(patch: bytes, patch_type: str) -> list[dict[str, Any]]:
    """The operations. Raises UnsupportedPatch for another type, ValidationError for what is no patch."""
    if essence(patch_type) != JSON_PATCH:
        raise unsupported(f"cannot apply a patch of type {essence(patch_type)}")
    found = _parse(patch)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise refuse("/patch", "must be an array of operations")
    if len(found) > MAX_OPERATIONS:
        raise refuse("/patch", f"has more than {MAX_OPERATIONS} operations")
    return found


def apply(body: bytes, content_type: str, wanted: list[dict[str, Any]]) -> bytes:
    """The patched body. Raises UnsupportedPatch for an object that is no JSON, PatchFailed with the operation's index."""
    kind = essence(content_type)
    if kind != "application/json" and not kind.endswith("+json"):
        raise unsupported(f"cannot patch an object of type {kind} with JSON Patch")
    try:
        document = read_json(body)
    except ValueError:
        raise unsupported("cannot patch the object: its body is no JSON") from None
    for index, operation in enumerate(wanted):
        try:
            document = jsonpatch.JsonPatch([operation]).apply(document)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError) as error:
            word = str(operation.get("op"))[:32]
            raise PatchFailed(f"cannot apply operation {index}: {type(error).__name__}", index=index, op=word) from None
    check_json(document, "/patch")
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def essence(content_type: str) -> str:
    """The media type without parameters, in lower case."""
    return content_type.split(";")[0].strip().lower()


def unsupported(detail: str) -> UnsupportedPatch:
    return UnsupportedPatch(detail, supported=list(SUPPORTED))


def _parse(patch: bytes) -> Any:
    try:
        return read_json(patch)
    except ValueError:
        raise refuse("/patch", "is no JSON") from None
