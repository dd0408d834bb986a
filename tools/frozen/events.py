"""Types of events in the journal, with names of members of their data: found where a type is an
argument of a call.

The other arguments of that call are searched: literals in it, literals under a name of the same
function, and literals in functions of the same file that the call names or that pass the type on.
It is an approximation: data that another file composes is not seen.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeAlias, TypeGuard

from frozen import code, sources

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_TYPE: Final = re.compile(rf"({'|'.join(sources.EVENT_FAMILIES)})(\.[a-z_]+)+")
_LOG_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_FURTHER: Final = 2  # functions that a type is handed on to


def types(others: Collection[str]) -> dict[str, str]:
    """Type -> names of members. `others` are dotted names that are no types of events."""
    found: dict[str, set[str]] = {}
    for nodes in code.files():
        typed = [node for node in nodes if any(_texts(node))]
        if not typed:
            continue
        functions = {node.name: node for node in nodes if isinstance(node, _Function)}
        logged = {id(below) for node in nodes if _logs(node) for below in ast.walk(node)}
        recorded = {id(one) for node in nodes if _records(node) for one in node.args}
        owners = {id(below): node for node in functions.values() for below in ast.walk(node)}
        for node in typed:
            for name in (
                text
                for text in _texts(node)
                if (text not in others or id(node) in recorded) and id(node) not in logged
            ):
                owner = owners.get(id(node))
                members = (
                    set()
                    if owner is None
                    else set(_handed(owner, functions, frozenset({name}), _FURTHER))
                )
                found.setdefault(name, set()).update(members)
    return {name: ", ".join(sorted(members)) for name, members in found.items()}


def _records(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a type is the argument of this call, whatever else has its name."""
    return isinstance(node, ast.Call) and _name_of(node) == "LifecycleEvent"


def _handed(
    owner: _Function, functions: Mapping[str, _Function], texts: frozenset[str], further: int
) -> Iterator[str]:
    """Members in calls of this function that have a type among their arguments: a text, or a name
    that holds one or is a parameter."""
    assigned = _assigned(owner)
    if texts:
        variables = {name for name, value in assigned.items() if _mentions(value, texts)}
    else:
        variables = {one.arg for one in (*owner.args.args, *owner.args.kwonlyargs)} - {"self"}
    for call in (node for node in ast.walk(owner) if isinstance(node, ast.Call)):
        given = [*call.args, *(word.value for word in call.keywords)]
        direct = [one for one in given if isinstance(one, ast.Constant | ast.Name | ast.IfExp)]
        if not any(
            _mentions(one, texts) or (isinstance(one, ast.Name) and one.id in variables)
            for one in direct
        ):
            continue
        yield from (
            word.arg for word in call.keywords if word.arg and word.arg not in sources.EVENT_MEMBERS
        )
        for one in given:
            yield from _literals(one, assigned, functions)
        if (
            further
            and (callee := functions.get(_name_of(call))) is not None
            and callee is not owner
        ):
            yield from _handed(callee, functions, frozenset(), further - 1)


def _literals(
    node: ast.AST, assigned: Mapping[str, ast.AST], functions: Mapping[str, _Function]
) -> Iterator[str]:
    """Names in literals of an expression, of the names in it, and of functions that it calls."""
    for below in ast.walk(node):
        yield from code.keys(below)
        if isinstance(below, ast.Name) and below.id in assigned:
            yield from (name for one in ast.walk(assigned[below.id]) for name in code.keys(one))
        if isinstance(below, ast.Call) and (callee := functions.get(_name_of(below))) is not None:
            yield from (name for one in ast.walk(callee) for name in code.keys(one))


def _assigned(owner: _Function) -> dict[str, ast.AST]:
    """Names of a function with the expression that each got last."""
    found: dict[str, ast.AST] = {}
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif (
            isinstance(node, ast.AnnAssign | ast.NamedExpr)
            and isinstance(node.target, ast.Name)
            and node.value
        ):
            found[node.target.id] = node.value
    return found


def _mentions(node: ast.AST, texts: frozenset[str]) -> bool:
    return any(text in texts for below in ast.walk(node) for text in _texts(below))


def _texts(node: ast.AST) -> Iterator[str]:
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _TYPE.fullmatch(node.value)
    ):
        yield node.value


def _name_of(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _logs(node: ast.AST) -> bool:
    """A call of a logger, whose first text is for people."""
    return isinstance(node, ast.Call) and any(
        isinstance(below, ast.Attribute) and below.attr in _LOG_LEVELS
        for below in ast.walk(node.func)
    )
