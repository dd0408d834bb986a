"""What a file differs in from that of the case `default`: JSON Patch (RFC 6902) of JSON, a unified diff of other text.

Both have one change a line and no context, so that a change of the file beside it moves few lines.
"""

import difflib
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonpatch
from jsonpointer import escape

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\S+ @@")
_NAMES = ("name", "id", "path", "target")  # members that say which item of a list it is


def json_text(value: Any) -> str:
    """The form of all rendered JSON that is stored so."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def json_patch(old: str, new: str) -> str:
    """From one JSON text to another; "" for none."""
    changes = list(_changes(json.loads(old), json.loads(new), ""))
    lines = ",\n".join(json.dumps(change, ensure_ascii=False) for change in changes)
    return f"[\n{lines}\n]\n" if changes else ""


def apply_json_patch(old: str, patch: str) -> str:
    """The inverse of `json_patch`. Raises jsonpatch's errors where the patch is of another text."""
    return json_text(jsonpatch.apply_patch(json.loads(old), patch))


def _changes(old: Any, new: Any, at: str) -> Iterator[dict[str, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            path = f"{at}/{escape(key)}"
            if key not in new:
                yield {"op": "remove", "path": path}
            elif key not in old:
                yield {"op": "add", "path": path, "value": new[key]}
            else:
                yield from _changes(old[key], new[key], path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_changes(old, new, at)
    elif json.dumps(old) != json.dumps(new):
        yield {"op": "replace", "path": at, "value": new}


def _list_changes(old: list[Any], new: list[Any], at: str) -> Iterator[dict[str, Any]]:
    """From the end, so that each index is that of the old list."""
    matcher = difflib.SequenceMatcher(None, *([_key(item) for item in one] for one in (old, new)), autojunk=False)  # fmt: skip
    for tag, begin, end, new_begin, new_end in reversed(matcher.get_opcodes()):
        if tag == "equal":
            for offset in range(end - begin):
                yield from _changes(old[begin + offset], new[new_begin + offset], f"{at}/{begin + offset}")  # fmt: skip
            continue
        for index in reversed(range(begin, end)):
            yield {"op": "remove", "path": f"{at}/{index}"}
        for offset, item in enumerate(new[new_begin:new_end]):
            yield {"op": "add", "path": f"{at}/{begin + offset}", "value": item}


def _key(item: Any) -> str:
    names = [item[name] for name in _NAMES if name in item] if isinstance(item, dict) else []
    return json.dumps(names or item, sort_keys=True)


def text_diff(old: str, new: str) -> str:
    """From one text of complete lines to another, as `diff -U0` writes it; "" for none."""
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "default", "this", n=0)
    return "".join(lines)


def apply_text_diff(old: str, diff: str) -> str:
    """The inverse of `text_diff`. Raises AssertionError where the diff is of another text."""
    lines, hunks = old.splitlines(True), re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)[1:]
    for hunk in reversed(hunks):
        head, *changes = hunk.splitlines(True)
        found = _HUNK.match(head)
        assert found is not None, head
        first, count = int(found[1]), int(found[2] or 1)
        begin = first - 1 if count else first
        removed = [line[1:] for line in changes if line.startswith("-")]
        assert lines[begin : begin + count] == removed, f"the case `default` has another line {head}"  # fmt: skip
        lines[begin : begin + count] = [line[1:] for line in changes if line.startswith("+")]
    return "".join(lines)
