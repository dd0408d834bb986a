"""E016: where a manifest does not fit the schema, key by key.

A value that is refused is withdrawn: rules do not see it. Nothing is looked up over a network. Imported only for a manifest
that does not surely fit (`quick_check.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from agentbox.manifest.findings import Finding, Related
from agentbox.manifest.keypath import KeyPath, to_text
from agentbox.manifest.schema.bundle import bundle
from agentbox.manifest.schema.errors import Fault, Refusal, explain
from agentbox.manifest.schema.quick_check import compiled, is_integer, is_number, pairs

if TYPE_CHECKING:
    from agentbox.manifest.load import Manifest


@dataclass(frozen=True)
class Verdict:
    """`withdrawn` are key paths of names only: a bad item of a list withdraws the list."""

    findings: tuple[Finding, ...]
    withdrawn: frozenset[KeyPath]


def check(manifest: "Manifest") -> Verdict:
    """All findings of the schema, sorted by place."""
    refusals = [*_from_schema(manifest.written), *_pairs(manifest.written)]
    findings = sorted((_finding(manifest, refusal) for refusal in refusals), key=lambda found: found.order)
    withdrawn = frozenset(path for refusal in refusals for path in refusal.withdrawn)
    return Verdict(tuple(findings), withdrawn)


def _from_schema(written: Mapping[str, Any]) -> Iterator[Refusal]:
    """One refusal a place: a wrong type hides what else is wrong with the same value."""
    seen: set[tuple[KeyPath, str]] = set()
    errors = sorted(validator().iter_errors(written), key=lambda error: error.validator != "type")
    wrong = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    for error in errors:
        path = tuple(error.absolute_path)
        if path in wrong and error.validator != "type":
            continue
        for refusal in explain(Fault.of(error)):
            if (refusal.path, refusal.kind) not in seen:
                seen.add((refusal.path, refusal.kind))
                yield refusal


def _pairs(written: Mapping[str, Any]) -> Iterator[Refusal]:
    """`x_env` and `x_file` of one table are two ways to say one thing."""
    for both in pairs(written):
        name, other = (path[-1] for path in both)
        yield Refusal(
            path=both[0],
            kind="bad-value",
            message=f"`{name}` and `{other}` are both written; only one of the pair may be",
            remedy=f"Drop `{other}` to read the file, or `{name}` to read the variable.",
            withdrawn=both,
            related=both[1:],
        )


def _finding(manifest: "Manifest", refusal: Refusal) -> Finding:
    key = to_text(refusal.path)
    line, column = manifest.place(key)
    related = (to_text(path) for path in refusal.related)
    return Finding(
        code="E016",
        severity="error",
        key=key,
        line=line,
        column=column,
        message=refusal.message,
        remedy=refusal.remedy,
        kind=refusal.kind,
        related=tuple(Related(key=at, line=manifest.place(at).line) for at in related),
    )


@cache
def validator() -> Validator:
    """The compiled schema: integers are integers, numbers are finite, `$` in a pattern is the end of the text."""
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number})
    extend: Callable[..., type[Validator]] = validators.extend
    return extend(Draft202012Validator, {"pattern": _pattern}, type_checker=checker)(bundle())


def _is_integer(_checker: object, value: object) -> bool:
    return is_integer(value)


def _is_number(_checker: object, value: object) -> bool:
    return is_number(value)


def _pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterable[ValidationError]:
    if isinstance(value, str) and not compiled(pattern).search(value):
        yield ValidationError(f"does not match {pattern}")
