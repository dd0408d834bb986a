"""Words that the glossary replaces: as parts of names that the code defines, and in messages."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from measuring.sources import Module

_OLD: Final = """
answers asked asker bait begun bury card come crowd desk eager far following follower folder
forget found give given gone grows handed happening hear held here holding house keeper kept
known least leave left leftovers lives made manners mend mine mint most named narrowed near
neighbour newborn notice obey one over own part parted patience place rehearsal room said say
scorecard settle settled shown spare spelt standing stranger take tell tenant there tidy told
turns walker wanted what who whole why wish withdraw
"""
_WORDS: Final = frozenset(_OLD.split())
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES: Final = (ast.ClassDef, *_FUNCTIONS)
_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_STANDARD: Final = re.compile(
    "not_found|connection_made|fetch_one|one_shot|card_number|in_place"
)  # terms of HTTP, asyncio, DB-API and plain English that contain such a word
_SENTENCES: Final = {"is no": re.compile(r"\bis no\b"), "Mend": re.compile(r"\bMend\b")}


def old_names(modules: list[Module]) -> int:
    """Classes, functions, parameters, fields and constants whose name has such a word."""
    return sum(_is_old(name) for module in modules for name in _defined(module.tree))


def old_variables(modules: list[Module]) -> int:
    """The same of variables within functions, each once a function."""
    return sum(_is_old(name) for module in modules for name in _variables(module.tree))


def old_sentences(modules: list[Module]) -> dict[str, int]:
    """Texts in the code (not in docstrings) that have such a pattern, by pattern."""
    texts = [text for module in modules for text in module.texts]
    return {
        name: sum(bool(form.search(text)) for text in texts) for name, form in _SENTENCES.items()
    }


def _is_old(name: str) -> bool:
    words = "_".join(_PARTS.findall(name)).lower()
    return not _WORDS.isdisjoint(_STANDARD.sub("", words).split("_"))


def _defined(tree: ast.Module) -> Iterator[str]:
    for scope in ast.walk(tree):
        if isinstance(scope, _SCOPES):
            yield scope.name
        if isinstance(scope, _FUNCTIONS):
            yield from (node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg))
        elif isinstance(scope, ast.Module | ast.ClassDef):
            yield from sorted({name for node in _own(scope) for name in _stored(node)})


def _variables(tree: ast.Module) -> Iterator[str]:
    for scope in ast.walk(tree):
        if isinstance(scope, _FUNCTIONS):
            yield from sorted({name for node in _own(scope) for name in _stored(node)})


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What lies in a scope and in no scope within it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _own(child)


def _stored(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return (node.id,)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return (node.attr,)
    return ()
