"""Cycles of imports, those for type checks and those within functions included."""

import ast
from collections.abc import Iterator, Mapping

from measuring.sources import Module


def cycles(modules: list[Module]) -> list[tuple[str, ...]]:
    """Groups of files that import each other, the largest first."""
    names = {module.name for module in modules}
    graph = {
        module.name: names.intersection(_imported(module, names)) - {module.name}
        for module in modules
    }
    groups = (group for group in _components(graph) if len(group) > 1)
    return sorted(groups, key=lambda group: (-len(group), group))


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    """A module where one is named, else the package that the name comes from."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                below = f"{node.module}.{one.name}"
                yield below if below in names else node.module


def _components(graph: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Strongly connected components: who reaches whom, and is reached from there (Kosaraju)."""
    order: list[str] = []
    _visit(graph, sorted(graph), order)
    reverse: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            reverse[target].add(name)
    seen: set[str] = set()
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            _visit(reverse, [name], group, seen)
            yield tuple(sorted(group))


def _visit(
    graph: Mapping[str, set[str]], roots: list[str], order: list[str], seen: set[str] | None = None
) -> None:
    """Depth first, names in the order in which they are left."""
    seen = set() if seen is None else seen
    for root in roots:
        stack = [(root, iter(sorted(graph[root])))] if root not in seen else []
        seen.add(root)
        while stack:
            name, rest = stack[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                order.append(name)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(sorted(graph[following]))))
