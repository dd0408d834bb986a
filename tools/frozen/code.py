"""Names that stand in the code and in no table: found in its syntax, wherever a module lies and
whatever a function is called."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Final

from frozen import sources

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_WORD: Final = re.compile(r"[A-Z]{3,}")
_PROXY: Final = re.compile(r"(http|https|no|all)_proxy")
_SLUG: Final = re.compile(r"[a-z][a-z0-9_-]*")
_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def files() -> tuple[tuple[ast.AST, ...], ...]:
    """The nodes of every file of the product but those that name what belongs to other programs."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sources.product_files())
    return tuple(tuple(ast.walk(tree)) for tree in trees)


@cache
def _all_texts() -> frozenset[str]:
    return frozenset(text for nodes in files() for node in nodes for text in _texts(node))


def constants(pattern: str) -> dict[str, str]:
    """Every text of the product that has that form, parts of formatted ones too."""
    form = re.compile(pattern)
    return {text: "" for text in _all_texts() if form.fullmatch(text)}


def written(thing: Any) -> tuple[str, ...]:
    """Members that a module, class or function writes or reads by hand: keys of literals, with
    their value where it is a word; subscripts, and `get`."""
    nodes = list(ast.walk(_tree(thing)))
    names = (name for node in nodes for name in (*keys(node), *_words(node), *_read(node)))
    return tuple(sorted(set(names)))


def arguments(function: Callable[..., Any], at: int = -1) -> tuple[str, ...]:
    """Members of `params` (its last argument) that a method reads; those too that are read by the
    functions it passes `params` to."""
    tree = _tree(function).body[0]
    assert isinstance(tree, _FUNCTION)
    params, module = [each.arg for each in tree.args.args][at], inspect.getmodule(function)
    loops = {name: texts for node in ast.walk(tree) for name, texts in _loops(node)}
    found = set[str]()
    for node in ast.walk(tree):
        found.update(_read(node, params))
        if (
            isinstance(node, ast.Subscript)
            and _is_name(node.value, params)
            and isinstance(node.slice, ast.Name)
        ):
            found.update(loops.get(node.slice.id, ()))
        if isinstance(node, ast.Call) and inspect.isfunction(
            called := _resolved(node.func, module)
        ):
            places = [place for place, arg in enumerate(node.args) if _is_name(arg, params)]
            if sources.is_product(called.__module__) and called is not function:
                found.update(name for place in places for name in arguments(called, place))
    return tuple(sorted(found))


def answered(function: Callable[..., Any]) -> tuple[str, ...]:
    """Members of literals in its `return` statements."""
    returns = (node for node in ast.walk(_tree(function)) if isinstance(node, ast.Return))
    return tuple(
        sorted({name for node in returns for below in ast.walk(node) for name in keys(below)})
    )


def environment() -> dict[str, str]:
    """Names of variables: texts in capitals that are no identifier, and single words that are
    looked up in a mapping called env."""
    spelt, looked_up, identifiers = set[str](), set[str](), set[str]()
    for nodes in files():
        for node in nodes:
            spelt.update(
                text for text in _texts(node) if _VARIABLE.fullmatch(text) or _PROXY.fullmatch(text)
            )
            identifiers.update((node.id,) if isinstance(node, ast.Name) else ())
            if (
                isinstance(node, ast.Call | ast.Subscript)
                and "env" in ast.unparse(_holder(node)).lower()
            ):
                looked_up.update(name for name in _looked_up(node) if _WORD.fullmatch(name))
    return dict.fromkeys((spelt - identifiers - sources.LINUX_CAPABILITIES) | looked_up, "")


def keys(node: ast.AST) -> Iterator[str]:
    """Texts that are keys of a literal."""
    for key in node.keys if isinstance(node, ast.Dict) else ():
        yield from () if key is None else _texts(key)


def _tree(thing: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(thing)))


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _words(node: ast.AST) -> Iterator[str]:
    """`name=word` for a member whose value is a word, or one of several."""
    for key, value in (
        zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    ):
        choices = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
        for name in () if key is None else _texts(key):
            yield from (
                f"{name}={text}" for one in choices for text in _texts(one) if _SLUG.fullmatch(text)
            )


def _holder(node: ast.Call | ast.Subscript) -> ast.AST:
    """What is read: `x` of `x[name]` and of `x.get(name)`."""
    return node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", node.func)


def _looked_up(node: ast.AST) -> Iterator[str]:
    """A name in `x[name]` and `x.get(name)`."""
    if isinstance(node, ast.Subscript):
        yield from _texts(node.slice)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
    ):
        yield from (text for arg in node.args[:1] for text in _texts(arg))


def _read(node: ast.AST, of: str = "") -> Iterator[str]:
    """The same; only of the variable `of` where one is named."""
    if isinstance(node, ast.Subscript | ast.Call) and (not of or _is_name(_holder(node), of)):
        yield from _looked_up(node)


def _loops(node: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A variable that runs through a literal, and what it takes."""
    if not isinstance(node, ast.comprehension | ast.For):
        return
    if isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple | ast.List):
        texts = (text for item in node.iter.elts for text in _texts(item))
        yield node.target.id, tuple(texts)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _resolved(name: ast.AST, module: ModuleType | None) -> Any:
    """What `f` or `module.f` is in that module; None for anything else."""
    if isinstance(name, ast.Name):
        return getattr(module, name.id, None)
    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
        return getattr(getattr(module, name.value.id, None), name.attr, None)
    return None
