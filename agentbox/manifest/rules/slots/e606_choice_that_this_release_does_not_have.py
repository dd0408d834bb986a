"""E606: a valid name that is reserved for a later release."""

from collections.abc import Iterator

from agentbox.manifest.features.model import Gate
from agentbox.manifest.features.supported_choices import AVAILABLE, UNREAD, gates
from agentbox.manifest.findings import Finding
from agentbox.manifest.keys import keys
from agentbox.manifest.model import plain
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.toml_text import format_toml

CODE, SINCE = "E606", "0.1"
TITLE = "choice that this release does not have"
REASON = """The schema is final and includes implementations, modes, features and settings of later
releases. With one of them the box could not start, or would silently do less."""
_MAPS = sorted({key.partition(".*")[0] for key in AVAILABLE if "*" in key})
_STACK = "desktop.stack"
READS = (*AVAILABLE, *UNREAD, *gates(), _STACK, *_MAPS)
BAD = """
[adapters.pods]
use = "external-solid"
endpoint = "https://pods.example/"
auth = "solid-oidc"
"""
GOOD = """
[adapters.pods]
use = "external-solid"
endpoint = "https://pods.example/"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key."""
    for key, available in AVAILABLE.items():
        for path in _paths(context, key):
            value = context[path]
            if any(
                item not in available for item in (value if isinstance(value, tuple) else (value,))
            ):
                yield _unavailable(
                    context,
                    path,
                    f"Choose {' or '.join(format_toml(plain(choice)) for choice in available)}.",
                )
    yield from _check_gates(context)
    for key, reader in UNREAD.items():
        if context.is_written(key):
            yield context.finding(
                key,
                message=f"{key} is for {reader}, which this release does not support",
                remedy=f"Remove {key}: nothing reads it yet.",
            )


def _paths(context: RuleContext, key: str) -> tuple[str, ...]:
    """The key itself, or one path per entry of its map."""
    table, star, name = key.partition(".*")
    return tuple(f"{table}.{entry}{name}" for entry in context.names(table)) if star else (key,)


def _check_gates(context: RuleContext) -> Iterator[Finding]:
    """Switches without a feature file, and an unsupported desktop stack."""
    files = [feature.gate for feature in context.features.values() if feature.gate]
    for key in gates():
        off_value = keys()[key].default
        if context[key] != off_value and not any(
            key == gate.when or _is_opened_by(context, gate, key) for gate in files
        ):
            yield _unavailable(context, key, f"Choose {format_toml(off_value)}.")
    stack = context[_STACK]
    stacks = [gate for gate in files if gate.when == "desktop.enabled"]
    if context["desktop.enabled"] and stacks and not any(stack in gate.values for gate in stacks):
        available = sorted(value for gate in stacks for value in gate.values)
        yield _unavailable(context, _STACK, f"Choose {' or '.join(map(format_toml, available))}.")


def _is_opened_by(context: RuleContext, gate: Gate, key: str) -> bool:
    return gate.key == key and context[key] in gate.values


def _unavailable(context: RuleContext, key: str, remedy: str) -> Finding:
    default = "" if context.is_written(key) else " (the default)"
    return context.finding(
        key,
        message=f"{key} = {format_toml(plain(context[key]))}{default} is not supported in this "
        "release of agentbox",
        remedy=remedy,
    )
