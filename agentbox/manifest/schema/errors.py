"""Explains validation errors to the author of a manifest: kind, message, remedy."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key_path import KeyPath, to_text
from agentbox.manifest.findings import Kind
from agentbox.manifest.schema.examples import EXAMPLES
from agentbox.manifest.schema.generator import resolve_reference
from agentbox.manifest.schema.remedies import example_value, suggest_key
from agentbox.manifest.suggest import suggest_names
from agentbox.manifest.toml_text import (
    TYPE_EXAMPLES,
    as_seconds,
    as_size,
    format_short,
    format_toml,
    type_name,
)

if TYPE_CHECKING:
    from jsonschema import ValidationError


@frozen
class SchemaError:
    """One error of the schema."""

    path: KeyPath
    kind: Kind
    message: str
    remedy: str
    invalid: tuple[KeyPath, ...] = ()
    related: tuple[KeyPath, ...] = ()


@dataclass(frozen=True)
class ValidatorError:
    """An error of the validator: the failed keyword, its value, the schema around it, and the
    invalid value."""

    keyword: str
    expected: Any
    schema: Mapping[str, Any]
    path: KeyPath
    value: Any
    is_name: bool = False
    """True if the name of a map entry is invalid; then it is the value."""

    @classmethod
    def of(cls, error: "ValidationError") -> "ValidatorError":
        """Converts the library's error."""
        schema: Any = error.schema
        is_name = "propertyNames" in error.absolute_schema_path
        path = (*error.absolute_path, *((error.instance,) if is_name else ()))
        return cls(
            str(error.validator), error.validator_value, schema, path, error.instance, is_name
        )


def explain(error: ValidatorError) -> Iterator[SchemaError]:
    """The errors to report: one, or several for unknown or missing keys of a table."""
    return _bad_name(error) if error.is_name else _BY_KEYWORD.get(error.keyword, _bad_value)(error)


def _key_path(path: KeyPath) -> KeyPath:
    """The key of the value, without list positions at the end."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def _value_path(path: KeyPath) -> KeyPath:
    """The path of the invalid value: everything before the first list."""
    cut = next((index for index, segment in enumerate(path) if isinstance(segment, int)), len(path))
    return path[:cut]


def _unknown(error: ValidatorError) -> Iterator[SchemaError]:
    names = list(error.schema["properties"])
    for name in error.value:
        if name in names:
            continue
        path = (*error.path, name)
        location = f"[{to_text(path[:-1])}]" if len(path) > 1 else "a manifest"
        yield SchemaError(
            path=path,
            kind="unknown-key",
            message=f"unknown key `{name}` in {location}",
            remedy=suggest_key(name, names, path),
            invalid=(_value_path(path),),
        )


def _missing(error: ValidatorError) -> Iterator[SchemaError]:
    for name in error.expected:
        if name not in error.value:
            path = (*error.path, name)
            example = example_value(resolve_reference(error.schema["properties"][name]))
            yield SchemaError(
                path=path,
                kind="missing-key",
                message=f"`{name}` is required in {_table(path)} and is absent",
                remedy=f"Add `{name} = {example}`.",
                invalid=() if len(path) == 1 else (_value_path(path),),
            )


def _table(path: KeyPath) -> str:
    return f"[{to_text(path[:-1])}]" if len(path) > 1 else "a manifest"


def _dependent(error: ValidatorError) -> Iterator[SchemaError]:
    written = [name for name in error.expected if name in error.value]
    for name in sorted(
        {need for trigger in written for need in error.expected[trigger]} - set(error.value)
    ):
        path = (*error.path, name)
        yield SchemaError(
            path=path,
            kind="missing-key",
            message=f"`{name}` is required in {_table(path)} as soon as `{written[0]}` is written",
            remedy=f'Add `{name} = "<why this is needed, 10 to 200 characters>"`.',
            invalid=(_value_path(path),),
        )


def _wrong_type(error: ValidatorError) -> Iterator[SchemaError]:
    path, value = error.path, error.value
    if isinstance(value, str) and _is_seconds(path) and (seconds := as_seconds(value)) is not None:
        yield _unit(path, value, str(seconds), "time is a number of seconds")
        return
    expected, fallback = TYPE_EXAMPLES[str(error.expected)]
    example = (
        format_toml(error.schema["default"])
        if error.schema.get("default") not in (None, "", [])
        else fallback
    )
    if error.schema.get("title") in EXAMPLES:
        expected, example = EXAMPLES[error.schema["title"]]
    yield SchemaError(
        path=_key_path(path),
        kind="wrong-type",
        message=f"{_item(path)}{describe_value(value)} where {expected} is expected",
        remedy=f"Write {expected}, such as `{example}`.",
        invalid=(_value_path(path),),
    )


def describe_value(value: Any) -> str:
    """`a string ("4")`; for arrays and tables the type alone."""
    return (
        type_name(value)
        if isinstance(value, (dict, list))
        else f"{type_name(value)} ({format_short(value)})"
    )


def _is_seconds(path: KeyPath) -> bool:
    return bool(path) and isinstance(path[-1], str) and path[-1].endswith("_seconds")


def _item(path: KeyPath) -> str:
    return f"item {path[-1] + 1}: " if path and isinstance(path[-1], int) else ""


def _unit(path: KeyPath, value: str, corrected: str, reason: str) -> SchemaError:
    return SchemaError(
        path=_key_path(path),
        kind="bad-unit",
        message=f"{_item(path)}{format_short(value)} is in another unit: {reason}",
        remedy=f"Write `{corrected}`.",
        invalid=(_value_path(path),),
    )


def _bad_pattern(error: ValidatorError) -> Iterator[SchemaError]:
    path, value = error.path, error.value
    title = str(error.schema.get("title", ""))
    if title == "size" and (corrected := as_size(value)) is not None:
        yield _unit(
            path, value, f'"{corrected}"', "sizes are whole numbers of KiB, MiB, GiB or TiB"
        )
        return
    if title in EXAMPLES:
        expected, example = EXAMPLES[title]
        yield _bad_value_error(
            error, f"is not {expected}", f"Write {expected}, such as `{example}`."
        )
        return
    expected = f"text that matches {error.expected}"
    yield _bad_value_error(error, f"is not {expected}", f"Write {expected}.")


def _bad_name(error: ValidatorError) -> Iterator[SchemaError]:
    if error.schema.get("title") != "name":
        yield _bad_value_error(
            error,
            "is an invalid pattern: use letters, digits and ._*?[]!:/@+-, at most 128",
            f"Write `[{to_text((*error.path[:-1], 'small-*'))}]`, for example.",
        )
        return
    words = re.findall(r"[a-z0-9]+", error.value.lower())
    suggestion = "-".join(words).lstrip("0123456789-")[:32] or "worker"
    yield _bad_value_error(
        error,
        "is an invalid name: use lower case letters, digits and hyphens, a letter first, "
        "at most 32",
        f"Write `[{to_text((*error.path[:-1], suggestion))}]`.",
    )


def _bad_value_error(error: ValidatorError, complaint: str, remedy: str) -> SchemaError:
    path = error.path
    return SchemaError(
        path=_key_path(path),
        kind="bad-value",
        message=f"{_item(path)}{format_short(error.value)} {complaint}",
        remedy=remedy,
        invalid=(_value_path(path),),
    )


def _bad_choice(error: ValidatorError) -> Iterator[SchemaError]:
    allowed = [str(choice) for choice in error.expected]
    suggestions = (
        suggest_names(error.value, allowed, limit=1) if isinstance(error.value, str) else []
    )
    hint = f"Did you mean {format_toml(suggestions[0])}? " if suggestions else ""
    yield _bad_value_error(
        error,
        "is not one of the allowed values",
        f"{hint}Allowed: {', '.join(map(format_toml, error.expected))}.",
    )


def _bad_bound(error: ValidatorError) -> Iterator[SchemaError]:
    low, high = error.schema.get("minimum"), error.schema.get("maximum")
    yield _bad_value_error(
        error, f"is outside {low} to {high}", f"Write a number from {low} to {high}."
    )


def _bad_const(error: ValidatorError) -> Iterator[SchemaError]:
    expected = format_toml(error.expected)
    yield _bad_value_error(
        error, f"is not supported: this agentbox supports {expected}", f"Write `{expected}`."
    )


def _too_few(error: ValidatorError) -> Iterator[SchemaError]:
    yield _bad_value_error(error, "is empty", "Write at least one item.")


def _duplicate_items(error: ValidatorError) -> Iterator[SchemaError]:
    yield _bad_value_error(error, "contains a duplicate item", "Keep each item once.")


def _bad_value(error: ValidatorError) -> Iterator[SchemaError]:
    yield _bad_value_error(
        error, f"is not valid: {error.keyword} {error.expected}", "Fix the value."
    )


_BY_KEYWORD: Final[Mapping[str, Callable[[ValidatorError], Iterator[SchemaError]]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "dependentRequired": _dependent,
    "type": _wrong_type,
    "pattern": _bad_pattern,
    "enum": _bad_choice,
    "const": _bad_const,
    "minimum": _bad_bound,
    "maximum": _bad_bound,
    "uniqueItems": _duplicate_items,
    "minItems": _too_few,
}
