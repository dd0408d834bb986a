"""E606: a valid name for something that comes later."""

from collections.abc import Iterator

from agentbox.manifest.features.available import AVAILABLE, UNREAD, gates
from agentbox.manifest.features.model import Gate
from agentbox.manifest.findings import Finding
from agentbox.manifest.keys import keys
from agentbox.manifest.model import plain
from agentbox.manifest.rules.context import View
from agentbox.manifest.toml_text import spell

CODE, SINCE = "E606", "0.1"
TITLE = "choice that this release does not have"
WHY = """The schema is final and names implementations, modes, features and settings that a later release brings. Accepting
one today would build a box that cannot start, or that silently does less."""
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


def check(view: View) -> Iterator[Finding]:
    """One finding a key."""
    for key, served in AVAILABLE.items():
        for path in _paths(view, key):
            value = view[path]
            if any(one not in served for one in (value if isinstance(value, tuple) else (value,))):
                yield _refused(view, path, f"Choose {' or '.join(spell(plain(choice)) for choice in served)}.")
    yield from _gates(view)
    for key, reader in UNREAD.items():
        if view.written(key):
            yield view.finding(
                key,
                message=f"{key} is for {reader}, which is not in this release of agentbox",
                remedy=f"Remove {key}: nothing reads it yet.",
            )


def _paths(view: View, key: str) -> tuple[str, ...]:
    """The key itself, or one path an entry of its map."""
    table, star, name = key.partition(".*")
    return tuple(f"{table}.{entry}{name}" for entry in view.names(table)) if star else (key,)


def _gates(view: View) -> Iterator[Finding]:
    """Switches that no feature file has, and a desktop whose stack none has."""
    files = [feature.gate for feature in view.features.values() if feature.gate]
    for key in gates():
        off = keys()[key].default
        if view[key] != off and not any(key == gate.when or _opens(view, gate, key) for gate in files):
            yield _refused(view, key, f"Choose {spell(off)}.")
    stack = view[_STACK]
    stacks = [gate for gate in files if gate.when == "desktop.enabled"]
    if view["desktop.enabled"] and stacks and not any(stack in gate.values for gate in stacks):
        served = sorted(value for gate in stacks for value in gate.values)
        yield _refused(view, _STACK, f"Choose {' or '.join(map(spell, served))}.")


def _opens(view: View, gate: Gate, key: str) -> bool:
    return gate.key == key and view[key] in gate.values


def _refused(view: View, key: str, remedy: str) -> Finding:
    default = "" if view.written(key) else " (the default)"
    return view.finding(
        key, message=f"{key} = {spell(plain(view[key]))}{default} is not in this release of agentbox", remedy=remedy
    )
