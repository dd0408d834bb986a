"""E016: schema errors of a manifest, key by key. Rules do not see invalid values. No network
access. Imported only if `quick_check.py` gives no result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from agentbox.manifest.declarations.constraints import compiled, is_integer, is_number
from agentbox.manifest.declarations.key_path import KeyPath, to_text
from agentbox.manifest.findings import Finding, Related
from agentbox.manifest.positions import Position, nearest_position
from agentbox.manifest.schema.errors import SchemaError, ValidatorError, explain
from agentbox.manifest.schema.generator import manifest_schema
from agentbox.manifest.schema.quick_check import exclusive_pairs


@dataclass(frozen=True)
class ValidationResult:
    """`invalid` are key paths of names only: an invalid item makes its list invalid."""

    findings: tuple[Finding, ...]
    invalid: frozenset[KeyPath]


def check(written: Mapping[str, Any], positions: Mapping[str, Position]) -> ValidationResult:
    """All findings of the schema, sorted by position. `positions` maps key paths to positions."""
    schema_errors = [*_from_schema(written), *_pairs(written)]
    findings = sorted(
        (_finding(positions, schema_error) for schema_error in schema_errors),
        key=lambda finding: finding.order,
    )
    invalid = frozenset(path for schema_error in schema_errors for path in schema_error.invalid)
    return ValidationResult(tuple(findings), invalid)


def _from_schema(written: Mapping[str, Any]) -> Iterator[SchemaError]:
    """One error per position: a wrong type hides other errors of the same value."""
    reported: set[tuple[KeyPath, str]] = set()
    errors = sorted(validator().iter_errors(written), key=lambda error: error.validator != "type")
    mistyped = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    for error in errors:
        path = tuple(error.absolute_path)
        if path in mistyped and error.validator != "type":
            continue
        for schema_error in explain(ValidatorError.of(error)):
            if (schema_error.path, schema_error.kind) not in reported:
                reported.add((schema_error.path, schema_error.kind))
                yield schema_error


def _pairs(written: Mapping[str, Any]) -> Iterator[SchemaError]:
    """`x_env` and `x_file` in one table are two ways to set one value."""
    for pair in exclusive_pairs(written):
        name, other = (path[-1] for path in pair)
        yield SchemaError(
            path=pair[0],
            kind="bad-value",
            message=f"`{name}` and `{other}` are both set; only one of them is allowed",
            remedy=f"Drop `{other}` to read the file, or `{name}` to read the variable.",
            invalid=pair,
            related=pair[1:],
        )


def _finding(positions: Mapping[str, Position], schema_error: SchemaError) -> Finding:
    key = to_text(schema_error.path)
    line, column = nearest_position(positions, key)
    related = (to_text(path) for path in schema_error.related)
    return Finding(
        code="E016",
        severity="error",
        key=key,
        line=line,
        column=column,
        message=schema_error.message,
        remedy=schema_error.remedy,
        kind=schema_error.kind,
        related=tuple(
            Related(key=related_key, line=nearest_position(positions, related_key).line)
            for related_key in related
        ),
    )


@cache
def validator() -> Validator:
    """The compiled schema: integers are integers, numbers are finite, `$` in a pattern matches the
    end of the text only.
    """
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    )
    extend: Callable[..., type[Validator]] = validators.extend
    return extend(Draft202012Validator, {"pattern": _pattern}, type_checker=checker)(
        manifest_schema()
    )


def _is_integer(_checker: object, value: object) -> bool:
    return is_integer(value)


def _is_number(_checker: object, value: object) -> bool:
    return is_number(value)


def _pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterable[ValidationError]:
    if isinstance(value, str) and not compiled(pattern).search(value):
        yield ValidationError(f"does not match {pattern}")
